// The list of tasks: a page of it from the server, then what the event stream
// says.  The server sends only what a task can be for all its life (tool and
// owner); whether its status and age still fit is seen here, since a stream
// does not tell of a task that has left the filter.

const keptRows = 500;
const pageRows = 50;
const filterNames = ["status", "tool", "owner", "minAge", "maxAge"];

const columns = [
    ["status", "Status"], ["task", "Task", true], ["owner", "Owner"],
    ["progress", "Progress"], ["worker", "Worker"], ["age", "Age"],
    ["changed", "Changed"], ["expires", "Expires in"],
];

const list = {
    filters: {},
    rows: new Map(),
    cursor: null,
    loading: 0,
    failed: "",
    wanted: pageRows,
    dirty: false,
    late: new Set(),
    told: new Map(),
    paused: false,
    scroll: 0,
    drawing: false,
};


function readFilters(query) {
    const filters = {};

    for (const name of filterNames) {
        const value = query.get(name);

        if (value !== null && isFilter(name, value)) {
            filters[name] = value;
        }
    }

    return filters;
}


// an address may be anybody's
function isFilter(name, value) {
    switch (name) {
    case "status": return value === "working" || Object.hasOwn(phases, value);
    case "tool": return value !== "";
    case "owner": return true;
    default: return /^\d{1,9}$/.test(value);
    }
}


function queryOf(filters, names) {
    const query = new URLSearchParams();

    for (const name of names) {
        if (filters[name] !== undefined) {
            query.set(name, filters[name]);
        }
    }

    const text = query.toString();
    return text ? `?${text}` : "";
}


function listHash(filters) {
    return `#/tasks${queryOf(filters, filterNames)}`;
}


function fits(task) {
    const { status, minAge, maxAge } = list.filters;
    const age = (now() - Date.parse(task.createdAt)) / 1000;

    return (!status || task.phase === status || task.status === status)
           && !(age < Number(minAge)) && !(age > Number(maxAge))
           && !(task.expiresAt && Date.parse(task.expiresAt) <= now());
}


// --- what comes from the server

async function readPages(cursor, want, signal) {
    const found = [];

    // a page may end early, with few rows or none, if little matches
    for (let pages = 0; pages < 40 && found.length < want; pages++) {
        const query = new URLSearchParams(
            queryOf(list.filters, filterNames));
        query.set("limit", Math.min(100, want - found.length));

        if (cursor) {
            query.set("cursor", cursor);
        }

        const page = await getJson(`tasks?${query}`, { signal });
        found.push(...page.tasks);
        cursor = page.nextCursor || null;

        if (!cursor) {
            break;
        }
    }

    return { found, cursor };
}


async function loadList() {
    const mine = startLoading();
    const before = new Map(list.rows);

    try {
        const page = await readPages(null, list.wanted, mine.signal);

        // but for those that the stream has told of meanwhile
        for (const [id, task] of before) {
            if (list.rows.get(id) === task) {
                list.rows.delete(id);
            }
        }

        page.found.forEach(keepRow);
        list.cursor = page.cursor;

    } catch (error) {
        loadingFailed(error);
    }

    endLoading(mine);
}


async function loadMore() {
    const mine = startLoading();

    try {
        const room = Math.min(pageRows, keptRows - list.rows.size);
        const page = await readPages(list.cursor, room, mine.signal);
        page.found.forEach(keepRow);
        list.cursor = page.cursor;
        list.wanted = Math.min(keptRows, list.wanted + pageRows);

    } catch (error) {
        if (error.reason === "cursor_gone") {
            endLoading(mine);
            list.wanted = Math.min(keptRows, list.wanted + pageRows);
            loadList();
            return;
        }

        loadingFailed(error);
    }

    endLoading(mine);
}


// one at a time: what was begun before is not wanted any more
function startLoading() {
    if (list.abort) {
        list.abort.abort();
    }

    list.abort = new AbortController();
    list.told.clear();
    list.failed = "";
    drawSoon();
    return list.abort;
}


function loadingFailed(error) {
    if (error.name !== "AbortError") {
        list.failed = error.message;
    }
}


function endLoading(mine) {
    if (list.abort === mine) {
        list.abort = null;
        list.told.clear();
        list.dirty = true;
        list.loaded = true;
        drawSoon();
    }
}


// a page may be older than what the stream told while it was on its way
function keepRow(task) {
    if (!(list.told.get(task.taskId) > task.version) && fits(task)) {
        list.rows.set(task.taskId, task);
    }
}


function rowChanged(task) {
    const known = list.rows.get(task.taskId);

    zone.touch();

    if (list.abort) {
        list.told.set(task.taskId, task.version);
    }

    if (known && known.version >= task.version) {
        return;
    }

    if (fits(task)) {
        list.rows.set(task.taskId, task);
        list.late.add(task.taskId);
    } else if (!list.rows.delete(task.taskId)) {
        return;
    }

    list.dirty = true;
    drawSoon();
}


// time alone makes tasks too old, or old enough, or gone
function listTick() {
    for (const [id, task] of list.rows) {
        if (!fits(task)) {
            list.rows.delete(id);
            list.dirty = true;
        }
    }

    if (list.filters.minAge && now() - (list.readAt || 0) > 10000
        && !list.abort && list.loaded)
    {
        list.readAt = now();
        loadList();
    }

    if (list.dirty) {
        drawSoon();
    }
}


// --- what is seen

// Rows do not move below somebody's pointer or focus: they change where they
// are, and take their places when it is gone.
function isHeld() {
    return list.paused || list.pointed
           || list.view.body.contains(document.activeElement);
}


function drawSoon() {
    if (!list.drawing && list.view) {
        list.drawing = true;
        requestAnimationFrame(() => {
            list.drawing = false;
            drawList();
        });
    }
}


function drawList() {
    const { body, state, more } = list.view;
    const sorted = [...list.rows.values()].sort((a, b) =>
        a.lastUpdatedAt < b.lastUpdatedAt ? 1
            : a.lastUpdatedAt > b.lastUpdatedAt ? -1
                : a.taskId < b.taskId ? -1 : 1);

    for (const task of sorted.splice(keptRows)) {
        list.rows.delete(task.taskId);
    }

    for (const id of list.late) {
        if (!list.rows.has(id)) {
            list.late.delete(id);
        }
    }

    const waiting = isHeld() && !list.fresh ? drawHeld(sorted) : 0;

    if (!waiting) {
        keyed(body, sorted, (task) => task.taskId, makeRow, updateRow);
        list.late.clear();
        list.dirty = false;
        list.fresh = !list.loaded;
    }

    put(state, listState(sorted.length, waiting));
    state.classList.toggle("error", list.failed !== "");
    show(more, list.cursor !== null && sorted.length < keptRows);
    more.disabled = list.abort != null;
    show(list.view.empty, list.loaded && sorted.length === 0);
    put(list.view.empty, Object.keys(list.filters).length
        ? "No task matches these filters."
        : "There are no tasks. New tasks appear here automatically.");
    list.view.element.setAttribute("aria-busy", String(list.abort != null));

    // not while a task is shown, to which a last drawing of the list may come
    if (list.loaded && list.scroll && list.view.element.isConnected) {
        scrollTo(0, list.scroll);
        list.scroll = 0;
    }
}


// The rows that are there, where they are; answers how many are not, or not
// where they should be.
function drawHeld(sorted) {
    const places = [...list.view.body.children];
    let waiting = 0;

    for (const row of places) {
        const task = list.rows.get(row.taskId);
        row.classList.toggle("gone", !task);

        if (task) {
            updateRow(row, task);
        } else {
            waiting++;
        }
    }

    const shown = new Set(places.map((row) => row.taskId));
    waiting += sorted.filter((task) => !shown.has(task.taskId)).length;

    // only those that would move: their order among themselves is enough
    if (!waiting && sorted.some((task, i) =>
        places[i] && places[i].taskId !== task.taskId))
    {
        waiting = list.late.size || 1;
    }

    return waiting;
}


function listState(n, waiting) {
    if (list.failed) {
        return list.failed;
    }

    if (!list.loaded) {
        return "Loading…";
    }

    const text = n >= keptRows
        ? `The ${keptRows} most recently changed tasks`
        : `${n}${list.cursor ? " or more" : ""} `
          + (n === 1 ? "task" : "tasks");

    return waiting ? `${text} · order frozen, ${waiting} pending` : text;
}


function makeRow(task) {
    const row = list.view.row();
    const cells = row.parts;

    row.taskId = task.taskId;
    row.badge = h("span", {});
    row.link = h("a", { href: `#/task/${encodeURIComponent(task.taskId)}`,
                        class: "task-link" },
                 said(task.tool, "bdi", "said clip"));
    row.link.title = visible(task.tool);
    row.bar = progressBar();
    row.message = said("", "span", "said clip message");
    row.owner = said("", "bdi", "said clip");
    row.worker = said("", "bdi", "said clip");
    row.tries = h("span", { class: "muted small" });
    row.age = clockText("since");
    row.changed = clockText("since");
    row.expires = clockText("until");

    cells.status.append(row.badge);
    cells.task.append(row.link,
        h("code", { class: "id muted small" }, shortId(task.taskId)));
    cells.owner.append(row.owner);
    cells.progress.append(row.bar, row.message);
    cells.worker.append(row.worker, row.tries);
    cells.age.append(row.age);
    cells.changed.append(row.changed);
    cells.expires.append(row.expires);
    return row;
}


function shortId(id) {
    return visible(String(id).slice(0, 8));
}


function updateRow(row, task) {
    if (row.version === task.version) {
        return;
    }

    const message = task.statusMessage ?? "";
    const tries = task.attempt > 1 ? `attempt ${task.attempt}`
                                     + ` of ${task.attempts}` : "";

    setBadge(row.badge, task.phase, task.isError);
    setProgress(row.bar, task);
    tell(row.message, message);
    row.message.title = visible(message);
    tell(row.owner, task.owner || "–");
    row.owner.title = visible(task.owner || "");
    row.parts.owner.classList.toggle("empty", !task.owner);
    tell(row.worker, task.worker || (task.kind === "gateway" ? "gateway" : ""));
    row.worker.title = visible(task.worker || "");
    row.parts.worker.classList.toggle("empty", !task.worker && !tries
                                               && task.kind !== "gateway");
    put(row.tries, tries);
    setTime(row.age, task.createdAt);
    setTime(row.changed, task.lastUpdatedAt);
    setTime(row.expires, task.expiresAt);

    if (row.version !== undefined || list.late.has(task.taskId)) {
        flash(row);
    }

    row.version = task.version;
}


function flash(row) {
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
        const color = getComputedStyle(row).getPropertyValue("--flash");
        row.animate([{ backgroundColor: color },
                     { backgroundColor: "transparent" }], 1400);
    }
}


// --- the view, made once

function makeListView() {
    const { element, body, row }
        = table("Tasks, most recently changed first", columns);
    const state = h("p", { class: "list-state", role: "status" });
    const more = button("Load more", loadMore, { class: "more", hidden: true });
    const empty = h("p", { class: "empty-list", hidden: true });
    const hold = button("Freeze order", toggleHold, {
        "aria-pressed": "false",
        title: "Update rows in place without moving them (p)" });
    const counts = h("div", { class: "counts", role: "group",
                              "aria-label": "Tasks by state" });
    const filters = makeFilters();

    body.addEventListener("pointerover", (event) => {
        list.pointed = event.pointerType === "mouse";
    });
    body.addEventListener("pointerleave", () => {
        list.pointed = false;
        drawSoon();
    });
    body.addEventListener("focusout", drawSoon);

    list.view = {
        element: h("section", { class: "list-view", "aria-label": "Tasks" },
            counts, filters.toggle, filters.form,
            h("div", { class: "list-head" }, state, hold),
            h("div", { class: "table-frame" }, element), empty, more),
        body, row, state, more, empty, hold, counts, filters,
    };
}


function toggleHold() {
    list.paused = !list.paused;
    list.view.hold.setAttribute("aria-pressed", String(list.paused));
    drawSoon();
}


function makeFilters() {
    const status = h("select", { id: "f-status" },
        h("option", { value: "" }, "any"),
        Object.entries(phases).map(([value, { label }]) =>
            h("option", { value }, label)),
        h("option", { value: "working" }, "queued or running"));
    const tools = h("datalist", { id: "known-tools" });
    const owners = h("datalist", { id: "known-owners" });
    const tool = textInput("f-tool", "any", { list: "known-tools" });
    const owner = textInput("f-owner", "any", { list: "known-owners" });
    const none = h("input", { type: "checkbox", id: "f-none" });
    const minAge = textInput("f-min", "5m", { size: "6" });
    const maxAge = textInput("f-max", "1h", { size: "6" });
    const clear = button("Clear", () => setFilters({}), { class: "clear" });

    status.addEventListener("change", () =>
        setFilters({ ...list.filters, status: status.value || undefined }));
    tool.addEventListener("change", () =>
        setFilters({ ...list.filters, tool: tool.value || undefined }));
    owner.addEventListener("change", () =>
        setFilters({ ...list.filters, owner: owner.value || undefined }));
    none.addEventListener("change", () =>
        setFilters({ ...list.filters,
                     owner: none.checked ? "" : undefined }));

    for (const [name, input] of [["minAge", minAge], ["maxAge", maxAge]]) {
        input.addEventListener("change", () => ageChanged(name, input));
    }

    const form = h("form", { class: "filters", role: "search",
                             "aria-label": "Filter tasks",
                             onsubmit: (event) => event.preventDefault() },
        field("Status", status),
        field("Tool", tool),
        field("Owner", owner),
        h("label", { class: "check", for: "f-none" }, none, "no owner"),
        field("Older than", minAge),
        field("Younger than", maxAge),
        clear, tools, owners);

    // where there is little room
    const toggle = button("Filters", () => {
        const isOpen = toggle.getAttribute("aria-expanded") === "true";
        toggle.setAttribute("aria-expanded", String(!isOpen));
    }, { class: "filter-toggle", "aria-expanded": "false" });

    return { form, toggle, status, tool, owner, none, minAge, maxAge, clear,
             tools, owners };
}


function textInput(id, placeholder, props) {
    return h("input", { type: "text", id, placeholder, autocomplete: "off",
                        spellcheck: "false", ...props });
}


function field(label, input) {
    return h("div", { class: "field" },
             h("label", { for: input.id }, label), input);
}


function ageChanged(name, input) {
    const value = input.value.trim() === "" ? undefined
                                            : parseDuration(input.value);
    const wrong = value === null;

    input.setAttribute("aria-invalid", String(wrong));
    input.title = wrong ? "For example 90s, 5m, 2h or 1d" : "";

    if (!wrong) {
        setFilters({ ...list.filters,
                     [name]: value === undefined ? value : String(value) });
    }
}


// At once: the event that the address has changed may come later, when somebody
// has already chosen or written something else, which it would undo.
function setFilters(filters) {
    location.hash = listHash(filters);
    navigate();
}


// the form shows what the address says
function showFilters() {
    const { status, tool, owner, none, minAge, maxAge, clear, toggle }
        = list.view.filters;
    const filters = list.filters;
    const n = Object.keys(filters).length;

    status.value = filters.status || "";
    tool.value = filters.tool || "";
    owner.value = filters.owner || "";
    none.checked = filters.owner === "";
    owner.disabled = none.checked;

    for (const [input, value] of [[minAge, filters.minAge],
                                  [maxAge, filters.maxAge]])
    {
        input.value = value === undefined ? "" : durationText(Number(value));
        input.removeAttribute("aria-invalid");
    }

    clear.disabled = n === 0;
    put(toggle, n ? `Filters (${n})` : "Filters");
}


// by the zone's figures, or those of the tool that is filtered for
function showCounts() {
    const { tool, status } = list.filters;
    const of = tool === undefined ? zone.status
        : (zone.status.byTool || []).find((entry) => entry.name === tool);
    const counts = of ? of.tasks || {} : {};

    keyed(list.view.counts, Object.keys(phases), (phase) => phase,
        (phase) => button(null, () => setFilters({
            ...list.filters,
            status: list.filters.status === phase ? undefined : phase }),
            { class: `count ${phase}` }),
        (element, phase) => {
            if (!element.firstChild) {
                element.append(h("b", {}), badge(phase));
            }
            put(element.firstChild, of ? number(counts[phase] || 0) : "0");
            element.setAttribute("aria-pressed", String(status === phase));
        });

    suggest(list.view.filters.tools,
            (zone.status.byTool || []).map((entry) => entry.name));
    suggest(list.view.filters.owners,
            new Set([...list.rows.values()].map((task) => task.owner)));
}


function suggest(datalist, names) {
    keyed(datalist, [...names].filter((name) => name).slice(0, 128),
          (name) => name, (value) => h("option", { value }), () => {});
}


function showList(query) {
    const filters = readFilters(query);
    const same = JSON.stringify(filters) === JSON.stringify(list.filters);

    if (!same) {
        list.rows.clear();
        list.wanted = pageRows;
        list.scroll = 0;
        list.late.clear();
    }

    list.filters = filters;
    list.fresh = true;
    list.loaded = false;
    list.cursor = null;
    list.readAt = now();
    list.dirty = true;
    showFilters();
    showCounts();
    drawSoon();
    connection.follow(queryOf(filters, ["tool", "owner"]),
                      { load: loadList, row: rowChanged });
    return list.view.element;
}


function leaveList() {
    list.scroll = scrollY;

    // its end does not concern the list that is loaded next
    if (list.abort) {
        list.abort.abort();
        list.abort = null;
    }
}


// the focus to the next or the previous row
function stepRow(by) {
    const links = [...list.view.body.querySelectorAll(".task-link")];
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;

    if (links[next]) {
        links[next].focus();
        links[next].closest("tr").scrollIntoView({ block: "nearest" });
    }
}

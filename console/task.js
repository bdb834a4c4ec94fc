// The page of one task.

const page = { id: null, version: 0, view: null };

const events = {
    created: "created",
    claimed: "claimed",
    asked: "input requested",
    answered: "all answers received",
    completed: "completed",
    failed: "failed",
    retried: "attempt failed, queued again",
    released: "released, queued again",
    cancelled: "cancelled",
    lease_lost: "lease lost",
    queue_timeout: "not claimed in time",
    run_timeout: "timed out while running",
    process_lost: "nginx process lost",
};


function showTask(id) {
    page.id = id;
    page.version = 0;
    page.following = false;
    page.view = makeTaskView(id);

    // an id is part of the path of a request: nothing else goes there
    if (/^[0-9a-f-]+$/i.test(id)) {
        readTask();
    } else {
        taskFailed(page.view, new Problem(404, { reason: "task_not_found" }));
    }

    return page.view.element;
}


// what comes later for it does not concern the view that is shown then
function leaveTask() {
    page.view = null;
}


// Again whenever the stream says that it has changed.
async function readTask() {
    const { id, view } = page;

    if (!view) {
        return;
    }

    try {
        const raw = await request(taskPath(id));

        if (page.view === view) {
            drawTask(view, raw);
        }

    } catch (error) {
        if (page.view === view) {
            taskFailed(view, error);
        }
    }
}


function taskFailed(view, error) {
    const isGone = error.status === 404;

    put(view.problem, isGone && page.version
        ? "This task no longer exists: it expired or was deleted. The page"
          + " shows its last known state."
        : error.message);
    show(view.problem, true);
    show(view.actions, !isGone && view.actions.firstChild !== null);
    view.gone = isGone;
}


function followTask(task) {
    if (page.following) {
        return;
    }

    page.following = true;
    connection.follow(
        queryOf({ tool: task.tool, owner: task.owner }, ["tool", "owner"]),
        { load: readTask,
          row: (row) => {
              if (row.taskId === page.id && row.version > page.version) {
                  readTask();
              }
          } });
}


// it tells nobody when a task is removed
function taskTick() {
    const { task, gone } = page.view;

    if (task && !gone && task.expiresAt
        && Date.parse(task.expiresAt) < now() - 1000)
    {
        page.view.gone = true;
        readTask();
    }
}


// --- parts

function makeTaskView(id) {
    const view = {
        title: said("", "h1", "said"),
        badge: h("span", {}),
        bar: progressBar(),
        message: said("", "p", "said lines message"),
        actions: h("div", { class: "buttons" }),
        problem: h("p", { class: "problem", role: "alert", hidden: true }),
        facts: h("dl", { class: "facts" }),
        expires: clockText("until"),
        changed: clockText("since"),
        age: clockText("since"),
        sections: {},
    };

    for (const [name, label] of [
        ["questions", "Questions"], ["error", "Error"], ["result", "Result"],
        ["arguments", "Arguments"], ["history", "History"],
        ["answers", "Answers"], ["metadata", "Metadata"],
        ["raw", "Task as JSON"]])
    {
        const content = h("div", { class: "content" });
        const heading = h("h2", { id: `s-${name}` }, label);
        view.sections[name] = {
            content,
            element: h("section", { "aria-labelledby": heading.id,
                                    class: `s-${name}`, hidden: true },
                       heading, content),
        };
    }

    const parts = view.sections;

    view.element = h("article", { class: "task-view", "aria-label": "Task" },
        h("p", { class: "back" },
          h("a", { href: listHash(list.filters) }, "← All tasks")),
        h("header", { class: "task-head" },
          h("div", { class: "task-title" }, view.title, view.badge),
          h("div", { class: "task-id" },
            h("code", {}, visible(id)),
            button("Copy ID", () => copyText(id, "the ID"), {
                class: "quiet" })),
          view.actions),
        view.problem, view.bar, view.message,
        h("div", { class: "task-columns" },
          h("div", { class: "main-column" },
            ["questions", "error", "result", "arguments", "answers",
             "metadata", "raw"].map((name) => parts[name].element)),
          h("aside", { class: "side-column" }, view.facts,
            parts.history.element)));

    show(view.bar, false);
    return view;
}


function drawTask(view, raw) {
    const task = JSON.parse(raw);
    const members = membersOf(raw);

    if (task.version < page.version) {
        return;
    }

    page.version = task.version;
    view.task = task;
    view.raw = raw;
    view.gone = false;
    show(view.problem, false);
    document.title = `${visible(task.tool)} – ${zoneName()}`;

    tell(view.title, task.tool);
    setBadge(view.badge, task.phase, task.isError);
    setProgress(view.bar, task);
    tell(view.message, task.statusMessage ?? "");
    show(view.message, Boolean(task.statusMessage));
    drawFacts(view, task);
    drawActions(view, task);
    drawQuestions(view, task, members);
    drawOutcome(view, task, members);

    const params = members.params ? membersOf(members.params) : {};
    const name = shortId(task.taskId);

    drawJson(view.sections.arguments, "the arguments",
             params.arguments ?? members.params, `${name}-arguments`);
    drawJson(view.sections.metadata, "the metadata", members.metadata,
             `${name}-metadata`);
    drawJson(view.sections.answers, "the answers", members.inputResponses,
             `${name}-answers`);
    drawRaw(view.sections.raw, raw, name);
    drawHistory(view.sections.history, task);
    followTask(task);
}


// A section is made anew only if what it shows has changed: somebody may be
// reading it, or writing into it.
function drawSection(section, key, make) {
    if (section.key === key) {
        return;
    }

    section.key = key;
    show(section.element, key !== undefined);
    section.content.replaceChildren(...(key === undefined ? [] : make()));
}


function drawJson(section, title, text, file) {
    drawSection(section, text, () => [jsonBox(title, text, file)]);
}


// laid out only for those who look
function drawRaw(section, raw, name) {
    const fill = () => {
        if (!section.details.open) {
            return;
        }

        if (section.box) {
            section.box.setText(section.text);
        } else {
            section.box = jsonBox("the task", section.text, name);
            section.details.append(section.box);
        }
    };

    section.text = raw;

    if (!section.details) {
        section.details = h("details", { ontoggle: fill },
                            h("summary", {}, "Show"));
        section.content.append(section.details);
        show(section.element, true);
    }

    fill();
}


function drawFacts(view, task) {
    const facts = [
        ["Owner", task.owner ? said(task.owner) : "none"],
        ["Created", absolute(task.createdAt), view.age, " ago"],
        ["Changed", absolute(task.lastUpdatedAt), view.changed, " ago"],
        ["Expires", task.expiresAt ? absolute(task.expiresAt) : "never",
         task.expiresAt ? ["in ", view.expires] : null],
        ["Attempt", `${task.attempt ?? "–"} of ${task.attempts ?? "–"}`],
        ["Worker", task.worker ? said(task.worker) : "–"],
        ["Run by", task.kind === "gateway" ? "upstream (gateway)"
                                           : "workers (queue)"],
        ["Method", said(task.method ?? "–", "code")],
        ["Poll interval", seconds(task.pollIntervalMs / 1000)],
        ["Version", String(task.version)],
    ];

    setTime(view.age, task.createdAt);
    setTime(view.changed, task.lastUpdatedAt);
    setTime(view.expires, task.expiresAt);

    view.facts.replaceChildren(...facts.flatMap(([label, value, more, after]) =>
        [h("dt", {}, label),
         h("dd", {}, value, more
             ? h("span", { class: "muted" }, more, after) : null)]));
}


function drawActions(view, task) {
    const buttons = [];

    if (zone.admin && !isOver(task)) {
        buttons.push(["Cancel", () => cancelTask(task), {}]);
    }

    if (zone.admin && task.retryable) {
        buttons.push(["Retry", () => retryTask(task), { class: "primary" }]);
    }

    if (zone.admin) {
        buttons.push(["Delete", () => deleteTask(task), { class: "danger" }]);
    }

    show(view.actions, buttons.length > 0);
    keyed(view.actions, buttons, ([label]) => label,
          ([label, action, props]) => button(label, action, props), () => {});
}


function drawQuestions(view, task, members) {
    const { content, element } = view.sections.questions;
    const texts = members.inputRequests ? membersOf(members.inputRequests) : {};
    const given = task.inputResponses || {};
    const open = isOver(task) ? []
        : Object.entries(task.inputRequests || {})
            .filter(([key]) => !Object.hasOwn(given, key));

    show(element, open.length > 0);
    keyed(content, open, ([key]) => `${key} ${texts[key]}`,
          ([key, question]) => makeQuestion(key, question || {}, texts[key],
              (text) => answerQuestion(task.taskId, key, text)),
          () => {});
}


function answerQuestion(id, key, text) {
    const body = `{"inputResponses":{${JSON.stringify(key)}:${text}}}`;

    return attempt(async () => {
        await post(`${taskPath(id)}/input`, body);
        note("The answer was sent.");
        readTask();
    });
}


// --- results

function drawOutcome(view, task, members) {
    const { result, error } = view.sections;

    drawSection(result, members.result,
                () => resultParts(task, members.result));
    drawSection(error, members.error, () => errorParts(task, members.error));
}


function resultParts(task, raw) {
    const name = shortId(task.taskId);
    const content = task.result && Array.isArray(task.result.content)
        ? task.result.content : [];
    const members = membersOf(raw);

    return [
        task.isError
            ? h("p", { class: "problem" }, "The tool reported an error.")
            : null,
        ...content.map((block, i) => contentPart(block || {}, i, name)),
        members.structuredContent === undefined ? null
            : h("div", {}, h("h3", {}, "Structured content"),
                jsonBox("the structured content", members.structuredContent,
                        `${name}-structured`)),
        h("details", { open: content.length === 0 },
          h("summary", {}, "Show as JSON"),
          jsonBox("the result", raw, `${name}-result`)),
    ].filter((part) => part);
}


// text is shown; what would have to be loaded or decoded is described
function contentPart(block, i, name) {
    const resource = block.resource || {};
    const text = block.type === "text" ? block.text : resource.text;
    const data = block.data ?? resource.blob;
    const type = block.mimeType ?? resource.mimeType ?? "";
    const from = block.uri ?? resource.uri;
    const title = [block.type, type].filter((part) => part).join(", ");

    return h("div", { class: "content-part" },
        block.type === "text" ? null
            : h("p", { class: "muted" }, said(title || "unknown type"),
                from === undefined ? null : [" ", said(from, "code")]),
        typeof text === "string"
            ? textBox(`part ${i + 1} of the result`, text,
                      `${name}-${i + 1}.txt`) : null,
        typeof data === "string" ? dataPart(data, type, `${name}-${i + 1}`)
                                 : null);
}


function dataPart(data, type, file) {
    const size = Math.floor(data.replace(/=+$/, "").length * 3 / 4);

    return h("p", {}, `${bytes(size)} of data `,
        button("Download", () => attempt(async () => {
            const binary = Uint8Array.from(atob(data),
                                           (char) => char.charCodeAt(0));
            downloadFile(`${file}.bin`, [binary], "application/octet-stream");
        }), { "aria-label": `Download the data, ${visible(type)}` }));
}


function errorParts(task, raw) {
    const error = task.error || {};
    const data = membersOf(raw).data;

    return [
        h("p", { class: "error-line" }, said(error.code ?? "", "code"), " ",
          said(error.message ?? "", "span", "said lines")),
        data === undefined ? null : jsonBox("the error's data", data,
                                            `${shortId(task.taskId)}-error`),
    ].filter((part) => part);
}


function drawHistory(section, task) {
    const history = Array.isArray(task.history) ? task.history : [];
    const key = history.length ? JSON.stringify([history, task.historyDropped])
                               : undefined;

    drawSection(section, key, () => {
        const start = Date.parse(task.createdAt);

        return [
            task.historyDropped > 0
                ? h("p", { class: "muted small" }, `${task.historyDropped}`
                    + (task.historyDropped === 1
                       ? " earlier entry is no longer kept."
                       : " earlier entries are no longer kept.")) : null,
            h("ol", { class: "timeline" },
              history.map((entry) => historyItem(entry, start))),
        ].filter((part) => part);
    });
}


function historyItem(entry, start) {
    const label = Object.hasOwn(events, entry.event) ? events[entry.event]
                                                     : entry.event;
    const after = Date.parse(entry.at) - start;

    return h("li", { class: phases[entry.phase] ? entry.phase : "unknown" },
        h("div", {}, said(label, "b"), " ", badge(entry.phase)),
        h("div", { class: "muted small" },
          h("time", { datetime: entry.at }, absolute(entry.at)),
          after > 0 ? `, after ${seconds(after / 1000)}` : null,
          entry.attempt ? `, attempt ${entry.attempt}` : null,
          entry.worker ? [", ", said(entry.worker)] : null));
}


// --- what can be done

async function cancelTask(task) {
    const reason = h("input", { type: "text", id: "cancel-reason",
                                maxlength: "500", autocomplete: "off" });

    await ask({
        title: "Cancel this task?",
        body: [h("p", {}, "The worker is notified. This cannot be undone."),
               field("Reason shown to the client (optional)", reason)],
        confirm: "Cancel task",
        dismiss: "Keep task",
        action: async () => {
            const text = reason.value.trim();
            await post(`${taskPath(task.taskId)}/cancel`,
                       JSON.stringify(text ? { reason: text } : {}));
            note("The task was cancelled.");
            readTask();
        },
    });
}


async function retryTask(task) {
    const made = await attempt(() => post(`${taskPath(task.taskId)}/retry`));

    if (made) {
        note("Retried as a new task.");
        location.hash = `#/task/${encodeURIComponent(made.taskId)}`;
    }
}


async function deleteTask(task) {
    await ask({
        title: "Delete this task?",
        body: [h("p", {}, isOver(task)
            ? "The task and its result are also deleted for its owner."
            : "The task has not ended. It is also deleted for its owner and its"
              + " worker.")],
        confirm: "Delete",
        dismiss: "Keep task",
        action: async () => {
            await request(taskPath(task.taskId), { method: "DELETE" });
            note("The task was deleted.");
            list.rows.delete(task.taskId);
            location.hash = listHash(list.filters);
        },
    });
}

// Queues, workers, and how the zone is.

// --- queues and workers

const toolColumns = [
    ["tool", "Tool", true], ["state", "State"], ["queued", "Queued"],
    ["oldest", "Oldest"], ["running", "Running"], ["input", "Needs input"],
    ["claims", "Claims"], ["completed", "Completed"], ["failed", "Failed"],
    ["cancelled", "Cancelled"], ["wait", "Mean wait"], ["run", "Mean run"],
];

const workerColumns = [
    ["worker", "Worker", true], ["state", "State"], ["claims", "Claims"],
    ["completed", "Completed"], ["failed", "Failed"], ["seen", "Last seen"],
];

// a worker that was not seen for so long is taken for gone
const goneAfter = 120000;

const queues = {};


function makeQueuesView() {
    const action = ["action", "Action"];
    const tools = table("Tools", [...toolColumns, action]);
    const workers = table("Workers", [...workerColumns, action]);
    const noTools = h("p", { class: "empty-list" },
                      "No tool has received a task yet.");
    const noWorkers = h("p", { class: "empty-list" },
                        "No worker has connected yet.");

    tools.element.classList.add("figures");
    workers.element.classList.add("figures");

    Object.assign(queues, { tools, workers, noTools, noWorkers });
    queues.element = h("section", { class: "queues-view",
                                    "aria-label": "Queues and workers" },
        h("h1", {}, "Queues"),
        h("div", { class: "table-frame" }, tools.element), noTools,
        h("h1", {}, "Workers"),
        h("div", { class: "table-frame" }, workers.element), noWorkers);
}


function drawQueues() {
    const { byTool = [], byWorker = [] } = zone.status;
    const { tools, workers } = queues;

    for (const { element } of [tools, workers]) {
        element.classList.toggle("read-only", !zone.admin);
    }

    keyed(tools.body, byTool, (tool) => tool.name,
          (tool) => makeToolRow(tools.row(), tool), updateToolRow);
    keyed(workers.body, byWorker, (worker) => worker.name,
          (worker) => makeWorkerRow(workers.row(), worker), updateWorkerRow);
    show(queues.noTools, byTool.length === 0);
    show(tools.element, byTool.length > 0);
    show(queues.noWorkers, byWorker.length === 0);
    show(workers.element, byWorker.length > 0);
}


function stateTag(row, isOff, off, on) {
    row.parts.state.replaceChildren(
        h("span", { class: isOff ? "tag off" : "tag" }, isOff ? off : on));
}


// One button that does, or undoes.  action(verb) does it, and answers what to
// say of it.
function switchButton(row, isOn, labels, action) {
    if (!zone.admin) {
        row.parts.action.replaceChildren();
        row.switch = null;
        return;
    }

    const set = (on) => {
        row.isOn = on;
        put(row.switch, labels[on ? 1 : 0]);
    };

    if (!row.switch) {
        row.switch = button("", () => attempt(async () => {
            const on = !row.isOn;
            const words = await action(labels[on ? 0 : 1].toLowerCase());
            set(on);
            note(words);
            await zone.changed();
        }));
        row.parts.action.append(row.switch);
    }

    set(isOn);
}


function makeToolRow(row, tool) {
    row.parts.tool.append(h("a", { href: listHash({ tool: tool.name }) },
                            said(tool.name)));
    return row;
}


function updateToolRow(row, tool) {
    const { tasks = {}, finished = {} } = tool;
    const isPaused = Boolean(tool.paused);

    stateTag(row, isPaused, "paused", "active");
    put(row.parts.queued, number(tasks.queued));
    put(row.parts.oldest, tasks.queued ? seconds(tool.oldestQueued) : "–");
    put(row.parts.running, number(tasks.running));
    put(row.parts.input, number(tasks.input_required));
    put(row.parts.claims, number(tool.claims));
    put(row.parts.completed, number(finished.completed));
    put(row.parts.failed, number(finished.failed));
    put(row.parts.cancelled, number(finished.cancelled));
    put(row.parts.wait, mean(tool.wait));
    put(row.parts.run, mean(tool.run));
    switchButton(row, isPaused, ["Pause", "Resume"], async (verb) => {
        await post(`tools/${verb}`, JSON.stringify({ tool: tool.name }));
        return verb === "pause"
            ? `${tool.name} is paused: its tasks stay in the queue.`
            : `${tool.name} is resumed.`;
    });
}


function makeWorkerRow(row, worker) {
    row.seen = clockText("since");
    row.parts.worker.append(said(worker.name));
    row.parts.seen.append(row.seen, " ago");
    return row;
}


function updateWorkerRow(row, worker) {
    const isDraining = Boolean(worker.draining);
    const seen = worker.lastSeen * 1000;

    stateTag(row, isDraining, "draining",
             now() - seen > goneAfter ? "not seen" : "active");
    put(row.parts.claims, number(worker.claims));
    put(row.parts.completed, number(worker.completed));
    put(row.parts.failed, number(worker.failed));
    setTime(row.seen, Number.isFinite(seen) && seen > 0
        ? new Date(seen).toISOString() : "");
    switchButton(row, isDraining, ["Drain", "Resume"], async (verb) => {
        await post(`workers/${verb}`, JSON.stringify({ worker: worker.name }));
        return verb === "drain"
            ? `${worker.name} is drained: it receives no new tasks.`
            : `${worker.name} receives tasks again.`;
    });
}


function mean(times) {
    return times && times.count > 0 ? seconds(times.sum / times.count) : "–";
}


// --- health

const health = {};

const figures = [
    ["Requests", [
        ["Waiting requests", "waitingRequests"], ["Event streams", "streams"],
        ["Background calls", "runningCalls"], ["Sessions", "sessions"],
        ["Owners", "owners"], ["Tools", "tools"], ["Workers", "workers"],
    ]],
    ["Since nginx started", [
        ["Created", "created"], ["Completed", "finished.completed"],
        ["Failed", "finished.failed"], ["Cancelled", "finished.cancelled"],
        ["Expired before they ended", "finished.expired"],
        ["Deleted before they ended", "finished.deleted"],
        ["Claims", "claims"], ["Retries", "retries"],
        ["Lost leases", "lostLeases"], ["Stale lease tokens", "staleTokens"],
    ]],
    ["Housekeeping", [
        ["Sweeps", "sweep.runs"], ["Tasks swept", "sweep.tasks"],
        ["Tasks in the last sweep", "sweep.batch"],
        ["Delay in the last sweep", "sweep.lag", seconds],
        ["Maximum delay in a sweep", "sweep.maxLag", seconds],
        ["Removed (expired)", "removed.expired"],
        ["Removed (deleted)", "removed.deleted"],
        ["Recoveries after a crash", "recoveries"],
        ["Changes dropped", "newsDropped"],
        ["Change notifications", "signals"],
    ]],
];


function makeZoneView() {
    health.meters = h("div", { class: "cards" });
    health.cards = h("div", { class: "cards" });
    health.element = h("section", { class: "zone-view", "aria-label": "Zone" },
        h("h1", {}, "Memory"), health.meters,
        h("h1", {}, "Metrics"), health.cards);
}


function valueAt(path) {
    return path.split(".").reduce((at, name) =>
        at && typeof at === "object" ? at[name] : undefined, zone.status);
}


function drawZone() {
    const status = zone.status;
    const meters = [
        ["Tasks", status.slots, (n) => number(n)],
        ["Blocks of 128 bytes", status.blocks, (n) => number(n)],
    ].filter(([, use]) => use);

    keyed(health.meters, meters, ([label]) => label, makeMeter, updateMeter);

    const cards = [
        ["Tasks by state", Object.entries(status.tasks || {})
            .map(([name, n]) => [phases[name] ? phases[name].label : name,
                                 number(n)])],
        ...figures.map(([title, entries]) =>
            [title, entries.map(([label, path, format = number]) =>
                [label, format(valueAt(path))])]),
        ["Refused operations", entriesOf(status.refused, (n) => n > 0)],
        ["Time in the queue", status.wait],
        ["Run time", status.run],
        ...Object.keys(status).filter((name) => /store/i.test(name))
            .map((name) => ["Store", entriesOf(status[name], () => true)]),
    ].filter(([, content]) => content);

    keyed(health.cards, cards, ([title]) => title,
          ([title]) => h("section", { class: "card" }, h("h2", {}, title),
                         h("div", {})),
          updateCard);
}


function entriesOf(object, isWanted) {
    return Object.entries(object && typeof object === "object" ? object
                                                               : { object })
        .filter(([, value]) => isWanted(value))
        .map(([name, value]) =>
            [name, typeof value === "number" ? number(value)
                : typeof value === "string" ? value : JSON.stringify(value)]);
}


function makeMeter([label]) {
    const meter = h("meter", { min: 0, max: 1, low: 0.7, high: 0.85,
                               optimum: 0, "aria-label": label });
    return h("section", { class: "card" }, h("h2", {}, label), meter,
             h("p", { class: "muted" }));
}


function updateMeter(element, [, use, format]) {
    const [, meter, text] = element.children;
    const share = use.total > 0 ? use.used / use.total : 0;

    meter.value = share;
    put(text, `${format(use.used)} of ${format(use.total)} in use, `
              + `${(share * 100).toFixed(1)}%`);
}


function updateCard(element, [title, content]) {
    const key = JSON.stringify(content);

    if (element.key !== key) {
        element.key = key;
        element.lastChild.replaceChildren(Array.isArray(content)
            ? figureList(content) : histogram(title, content));
    }
}


function figureList(entries) {
    return entries.length === 0 ? h("p", { class: "muted" }, "none")
        : h("dl", { class: "figure-list" }, entries.flatMap(([name, value]) =>
            [h("dt", {}, said(name)), h("dd", {}, said(value))]));
}


// Of the counts up to each bound, how many lie between two.
function histogram(title, times) {
    const bounds = Object.entries(times.buckets || {})
        .map(([bound, n]) => [Number(bound), n])
        .sort((a, b) => a[0] - b[0]);
    let before = 0;
    const bars = bounds.map(([bound, n]) => {
        const count = n - before;
        before = n;
        return [`≤ ${bound < 1 ? seconds(bound) : durationText(bound)}`,
                count];
    });

    if (times.count > before) {
        bars.push(["more", times.count - before]);
    }

    const most = Math.max(1, ...bars.map(([, count]) => count));
    const rows = bars.map(([label, count]) => {
        const bar = h("span", { class: "column" });
        bar.style.setProperty("--share", count / most);
        return h("tr", {}, h("th", { scope: "row" }, label),
                 h("td", { class: "track" }, bar),
                 h("td", {}, number(count)));
    });

    return h("div", {}, h("p", { class: "muted" },
             `${number(times.count)} samples, mean ${mean(times)}`),
        h("table", { class: "histogram", "aria-label": title },
          h("tbody", {}, rows)));
}

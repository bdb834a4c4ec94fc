// Addresses, keys, dialogs, and the start.

const routes = {
    tasks: { show: (rest, query) => showList(query), leave: leaveList,
             tick: listTick, interval: 5000, title: "Tasks" },
    task: { show: (id) => showTask(id), leave: leaveTask, tick: taskTick,
            interval: 5000, title: "Task" },
    queues: { show: () => { drawQueues(); return queues.element; },
              draw: drawQueues, interval: 2000, title: "Queues" },
    zone: { show: () => { drawZone(); return health.element; },
            draw: drawZone, interval: 2000, title: "Zone" },
};

let route = null;
let shownHash = null;


function zoneName() {
    return zone.data ? visible(zone.data.zone) : "tasks";
}


// "#/task/ID", "#/tasks?status=failed"
function parseHash() {
    const [path, query = ""] = location.hash.replace(/^#\/?/, "")
        .split(/\?(.*)/s);
    const [name, rest = ""] = path.split("/");
    let id = rest;

    try {
        id = decodeURIComponent(rest);
    } catch {
        // as it is
    }

    return { name: Object.hasOwn(routes, name) ? name : "tasks", id,
             query: new URLSearchParams(query) };
}


function navigate() {
    if (location.hash === shownHash) {
        return;
    }

    shownHash = location.hash;

    const { name, id, query } = parseHash();
    const view = document.getElementById("view");
    const from = route;

    if (from && from.leave) {
        from.leave();
    }

    route = routes[name];
    connection.leave();
    document.title = `${route.title} – ${zoneName()}`;

    for (const link of document.querySelectorAll("#nav a")) {
        const isCurrent = link.dataset.route
                          === (name === "task" ? "tasks" : name);

        if (isCurrent) {
            link.setAttribute("aria-current", "page");
        } else {
            link.removeAttribute("aria-current");
        }
    }

    const element = route.show(id, query);

    if (view.firstChild !== element) {
        view.replaceChildren(element);

        if (route !== routes.tasks) {
            scrollTo(0, 0);
        }
    }

    // who came by keyboard goes on from here, not from the top
    if (from && from !== route) {
        view.focus({ preventScroll: true });
    }

    zone.every(route.interval);
}


// the figures have come
function zoneChanged() {
    const { zone: name, admin, version } = zone.data;

    tell(document.getElementById("zone-name"), name);
    show(document.getElementById("read-only"), !admin);
    tell(document.getElementById("version"), version ?? "");

    if (!route) {
        navigate();
    } else if (route === routes.tasks) {
        showCounts();
    } else if (route.draw) {
        route.draw();
    }
}


// --- dialogs

// One that asks before something is done, and says if it failed.
function ask({ title, body, confirm, dismiss, action }) {
    const problem = h("p", { class: "problem", role: "alert", hidden: true });
    const accept = h("button", { type: "submit", class: "danger" }, confirm);
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
        h("form", {}, h("h2", { id: "dialog-title" }, title), body, problem,
          h("div", { class: "buttons" }, accept,
            button(dismiss, () => dialog.close()))));

    dialog.firstChild.addEventListener("submit", async (event) => {
        event.preventDefault();
        accept.disabled = true;

        try {
            await action();
            dialog.close();

        } catch (error) {
            tell(problem, error.message);
            show(problem, true);
            accept.disabled = false;
        }
    });

    return showDialog(dialog);
}


function showDialog(dialog) {
    document.body.append(dialog);
    dialog.showModal();

    return new Promise((resolve) => {
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve();
        });
    });
}


const keys = [
    ["/", "filter by tool"], ["j, k", "next, previous task"],
    ["Enter", "open the task"],
    ["Esc", "leave a field or row, or return to the list"],
    ["p", "freeze or unfreeze the order of the list"], ["r", "reload the data"],
    ["1, 2, 3", "tasks, queues, zone"], ["?", "show this help"],
];


function showHelp() {
    const on = h("input", { type: "checkbox", id: "keys-on",
                            checked: keysAreOn() });
    const dialog = h("dialog", { "aria-labelledby": "help-title" },
        h("h2", { id: "help-title" }, "Keyboard shortcuts"),
        h("table", { class: "keys" }, h("tbody", {}, keys.map(([key, what]) =>
            h("tr", {}, h("th", { scope: "row" }, key.split(", ").flatMap(
                (name, i) => [i ? " " : null, h("kbd", {}, name)])),
              h("td", {}, what))))),
        h("p", {}, h("label", { class: "check", for: "keys-on" }, on,
                     "Enable keyboard shortcuts")),
        h("div", { class: "buttons" },
          button("Close", () => dialog.close(), { autofocus: true })));

    on.addEventListener("change", () => setKeys(on.checked));
    showDialog(dialog);
}


// --- keys

// storage may be forbidden: then it is for this page only
let keysOff = false;

try {
    keysOff = localStorage.getItem("keys") === "off";
} catch {
    // on, then
}


function keysAreOn() {
    return !keysOff;
}


function setKeys(on) {
    keysOff = !on;

    try {
        localStorage.setItem("keys", on ? "on" : "off");
    } catch {
        // see above
    }
}


function refresh() {
    zone.read();

    if (route === routes.tasks) {
        loadList();
    } else if (route === routes.task) {
        readTask();
    }
}


const listKeys = {
    "/": () => {
        list.view.filters.toggle.setAttribute("aria-expanded", "true");
        list.view.filters.tool.focus();
    },
    j: () => stepRow(1),
    k: () => stepRow(-1),
    p: toggleHold,
};

const allKeys = {
    1: () => { location.hash = listHash(list.filters); },
    2: () => { location.hash = "#/queues"; },
    3: () => { location.hash = "#/zone"; },
    r: refresh,
    "?": showHelp,
};


function keyPressed(event) {
    const isTyping = event.target.closest("input, textarea, select");

    if (event.ctrlKey || event.altKey || event.metaKey
        || document.querySelector("dialog[open]"))
    {
        return;
    }

    if (event.key === "Escape") {
        escapePressed(event);
        return;
    }

    const action = (route === routes.tasks && listKeys[event.key])
                   || allKeys[event.key];

    if (action && !isTyping && keysAreOn()) {
        event.preventDefault();
        action();
    }
}


// out of a field or a row first, then back to the list
function escapePressed(event) {
    if (event.target.closest("input, textarea, select, tbody")) {
        event.target.blur();
    } else if (route === routes.task) {
        location.hash = listHash(list.filters);
    }
}


// --- the start

makeListView();
makeQueuesView();
makeZoneView();
document.addEventListener("keydown", keyPressed);
document.getElementById("help").addEventListener("click", showHelp);
document.querySelector(".skip").addEventListener("click", (event) => {
    // not by the address, which has the route
    event.preventDefault();
    document.getElementById("view").focus();
});
// the list is where it was as soon as it is there: before, the browser would
// only know of a page that is too short
history.scrollRestoration = "manual";
addEventListener("hashchange", navigate);
document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
        tickAll();
        zone.read();
    }
});
setInterval(() => {
    tickAll();

    if (route && route.tick) {
        route.tick();
    }
}, 1000);
zone.listeners.push(zoneChanged);
zone.read();

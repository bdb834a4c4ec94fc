// What the page asks of the server, and how it stays in touch with it.

class Problem extends Error {
    constructor(status, problem) {
        super(problem.detail || reasons[problem.reason] || problem.reason
              || problem.title || `The server returned status ${status}.`);
        this.status = status;
        this.reason = problem.reason;
    }
}


const reasons = {
    task_not_found: "The task no longer exists.",
    task_terminal: "The task has already ended.",
    task_state_invalid: "The state of the task does not allow this action.",
    not_retryable: "The task cannot be retried.",
    read_only: "The console is read-only.",
    tool_not_found: "The tool does not exist.",
    worker_not_found: "The worker does not exist.",
    zone_full: "The zone is full.",
};


async function request(path, options) {
    let response;

    try {
        response = await fetch(`api/${path}`,
                               { cache: "no-store", ...options });
    } catch (error) {
        if (error.name === "AbortError") {
            throw error;
        }
        throw new Problem(0, { detail: "The server cannot be reached." });
    }

    const text = await response.text();

    if (!response.ok) {
        let problem = {};

        try {
            problem = JSON.parse(text);
        } catch {
            // not from the console, then: the status says enough
        }

        throw new Problem(response.status, problem || {});
    }

    return text;
}


async function getJson(path, options) {
    return JSON.parse(await request(path, options));
}


// the body is text: an answer may have numbers that must not be read
async function post(path, body = "{}") {
    const text = await request(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
    });
    return text ? JSON.parse(text) : null;
}


function taskPath(id) {
    return `tasks/${encodeURIComponent(id)}`;
}


// Does something that was asked for, and says if it could not be done.
async function attempt(action) {
    try {
        return await action();
    } catch (error) {
        note(error.message, true);
        return null;
    }
}


// The zone: its figures, read again and again, and what this console may do.

const zone = {
    data: null,
    listeners: [],
    timer: 0,
    interval: 5000,
    reading: false,
    readAt: 0,
    changes: 0,

    get admin() {
        return this.data !== null && this.data.admin === true;
    },

    get status() {
        return this.data ? this.data.status : {};
    },

    async read() {
        if (this.reading) {
            return;
        }

        this.reading = true;
        clearTimeout(this.timer);

        try {
            let data, changes, sent;

            // what was asked for before a change may not know of it
            do {
                changes = this.changes;
                sent = Date.now();
                data = await getJson("zone");
            } while (changes !== this.changes);

            setClock(data.now, sent, Date.now());
            this.data = data;
            this.readAt = Date.now();
            connection.zoneAnswers(true);
            this.listeners.forEach((listener) => listener());

        } catch (error) {
            connection.zoneAnswers(false, error);
        }

        this.reading = false;
        this.timer = setTimeout(() => this.read(), this.interval);
    },

    // something was changed by this page
    changed() {
        this.changes++;
        return this.read();
    },

    // soon, as something has changed, but not with every change
    touch() {
        const wait = Math.max(0, this.readAt + 1500 - Date.now());
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.read(), wait);
    },

    // how often somebody wants to see it
    every(interval) {
        this.interval = interval;
        this.read();
    },
};


// The event stream.  The browser comes back by itself where a stream was cut;
// where one was refused it does not, so that is done here, with patience.

const connection = {
    source: null,
    query: null,
    handlers: null,
    timer: 0,
    failures: 0,
    heard: false,
    zoneOk: true,

    // handlers: load() when the list may have missed something, row(task)
    follow(query, handlers) {
        this.leave();
        this.query = query;
        this.handlers = handlers;
        this.failures = 0;
        this.open();
    },

    leave() {
        clearTimeout(this.timer);

        if (this.source) {
            this.source.close();
        }

        this.source = null;
        this.handlers = null;
        this.show();
    },

    open() {
        const source = new EventSource(`api/events${this.query}`);
        this.source = source;
        this.heard = false;
        this.show();

        source.onopen = () => {
            this.failures = 0;
            this.show();

            // one that has told nothing yet cannot be resumed
            if (!this.heard) {
                this.handlers.load();
            }
        };

        source.onmessage = (event) => {
            this.heard = event.lastEventId !== "";
            this.handlers.row(JSON.parse(event.data));
        };

        source.addEventListener("reset", () => this.handlers.load());

        source.onerror = () => {
            if (source.readyState === EventSource.CLOSED) {
                this.retry();
            }
            this.show();
        };
    },

    retry() {
        const wait = Math.min(30000, 1000 * 2 ** this.failures++)
                     * (0.75 + Math.random() / 2);
        this.source.close();
        this.source = null;
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.open(), wait);
    },

    zoneAnswers(ok, error) {
        this.zoneOk = ok;
        this.refused = !ok && error.status >= 400 && error.status < 500;
        this.show();

        // the server is back: no need to wait any longer
        if (ok && this.handlers && !this.source && this.failures > 1) {
            clearTimeout(this.timer);
            this.failures = 0;
            this.open();
        }
    },

    state() {
        if (this.refused) {
            return ["down", "Request refused"];
        }

        if (!this.handlers) {
            return this.zoneOk ? ["live", "Connected"]
                               : ["down", "Reconnecting"];
        }

        if (this.source && this.source.readyState === EventSource.OPEN) {
            return ["live", "Live"];
        }

        return this.failures || !this.zoneOk || this.heard
            ? ["down", "Reconnecting"] : ["wait", "Connecting"];
    },

    show() {
        const [name, label] = this.state();
        const element = document.getElementById("connection");
        element.dataset.state = name;
        put(element.lastElementChild, label);
    },
};

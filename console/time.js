// Times, by the server's clock, and texts that change while they pass.

let clockOffset = 0;


function now() {
    return Date.now() + clockOffset;
}


// "now" of an answer that took from one time to another
function setClock(text, sent, received) {
    const server = Date.parse(text);

    if (!Number.isNaN(server)) {
        clockOffset = server - (sent + received) / 2;
    }
}


function duration(ms) {
    const s = Math.floor(Math.max(0, ms) / 1000);

    if (s < 60) {
        return `${s}s`;
    }

    if (s < 3600) {
        return `${Math.floor(s / 60)}m ${s % 60}s`;
    }

    if (s < 86400) {
        return `${Math.floor(s / 3600)}h ${Math.floor(s % 3600 / 60)}m`;
    }

    return `${Math.floor(s / 86400)}d ${Math.floor(s % 86400 / 3600)}h`;
}


// of measurements, where less than a second matters
function seconds(s) {
    if (typeof s !== "number" || !Number.isFinite(s)) {
        return "–";
    }

    if (s >= 60) {
        return duration(s * 1000);
    }

    return s >= 1 ? `${s.toFixed(1)} s` : `${Math.round(s * 1000)} ms`;
}


// "90", "5m", "1h 30m", "2d": seconds, or null
function parseDuration(text) {
    const units = { s: 1, m: 60, h: 3600, d: 86400 };
    const compact = text.trim().toLowerCase().replace(/\s+/g, "");
    let sum = 0;

    if (!/^(\d{1,9}[smhd]?)+$/.test(compact)) {
        return null;
    }

    for (const [, n, unit] of compact.matchAll(/(\d+)([smhd]?)/g)) {
        sum += Number(n) * (units[unit] || 1);
    }

    return sum;
}


// the shortest that parseDuration() understands
function durationText(s) {
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60]]) {
        if (s > 0 && s % size === 0) {
            return `${s / size}${unit}`;
        }
    }

    return `${s}s`;
}


const formatTime = new Intl.DateTimeFormat(undefined,
    { dateStyle: "medium", timeStyle: "medium" });


function absolute(text) {
    const time = Date.parse(text);
    return Number.isNaN(time) ? visible(text) : formatTime.format(time);
}


// "since" counts up from a time, "until" down to one
function clockText(mode) {
    return h("time", { "data-mode": mode });
}


function setTime(element, text) {
    if (element.at === text) {
        return;
    }

    element.at = text;
    element.ms = Date.parse(text);

    if (text) {
        element.dateTime = text;
        element.title = absolute(text);
    } else {
        element.removeAttribute("datetime");
        element.removeAttribute("title");
    }

    tick(element);
}


function tick(element) {
    const mode = element.dataset.mode;

    if (!element.at || Number.isNaN(element.ms)) {
        put(element, mode === "until" ? "never" : "–");
        return;
    }

    const ms = mode === "until" ? element.ms - now() : now() - element.ms;
    put(element, mode === "until" && ms <= 0 ? "now" : duration(ms));
    element.classList.toggle("soon", mode === "until" && ms < 60000);
}


function tickAll() {
    if (!document.hidden) {
        for (const element of document.querySelectorAll("time[data-mode]")) {
            tick(element);
        }
    }
}

// Elements.  Everything in the page is made by h(); what the server sends goes
// through said(), so that it can be nothing but text.

// Characters that would not be seen, or would change how others are: controls,
// marks of direction, and some that have no width.
const hidden = new RegExp("[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f"
    + "\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e"
    + "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]", "gu");


function h(tag, props, ...children) {
    const element = document.createElement(tag);

    for (const [name, value] of Object.entries(props || {})) {
        if (name.startsWith("on")) {
            element.addEventListener(name.slice(2), value);
        } else if (name === "value" || name === "checked") {
            element[name] = value;
        } else if (value === true) {
            element.setAttribute(name, "");
        } else if (value !== false && value != null) {
            element.setAttribute(name, value);
        }
    }

    element.append(...children.flat().filter((child) => child != null));
    return element;
}


function nameOf(char) {
    const code = char.codePointAt(0).toString(16);
    return `⟨${code.toUpperCase().padStart(4, "0")}⟩`;
}


// for places that take no elements: attributes and options
function visible(text) {
    return String(text).replace(hidden, nameOf).replace(/[\t\n]/g, nameOf);
}


// A text of somebody else's, isolated from what stands around it.
function said(text, tag = "bdi", className = "said") {
    const element = h(tag, { class: className, dir: "auto" });
    tell(element, text);
    return element;
}


function tell(element, text) {
    const string = String(text ?? "");

    if (element.said === string) {
        return;
    }

    element.said = string;
    element.replaceChildren();
    let from = 0;

    for (const match of string.matchAll(hidden)) {
        element.append(string.slice(from, match.index),
                       h("span", { class: "hidden-char" }, nameOf(match[0])));
        from = match.index + match[0].length;
    }

    element.append(string.slice(from));
}


// The same if there is nothing to change: a selection in it would be lost.
function put(element, text) {
    if (element.textContent !== text) {
        element.textContent = text;
    }
}


function show(element, shown) {
    if (element.hidden === shown) {
        element.hidden = !shown;
    }
}


// The children of a parent are those of the items, in their order.  An element
// stays the same as long as its item has the same key, and keeps the focus.
function keyed(parent, items, key, make, update) {
    const known = parent.byKey || (parent.byKey = new Map());
    const keys = new Set();
    let place = parent.firstElementChild;

    for (const item of items) {
        const name = key(item);
        let element = known.get(name);
        keys.add(name);

        if (!element) {
            element = make(item);
            known.set(name, element);
        }

        update(element, item);

        if (element === place) {
            place = place.nextElementSibling;
        } else {
            move(parent, element, place);
        }
    }

    for (const [name, element] of known) {
        if (!keys.has(name)) {
            element.remove();
            known.delete(name);
        }
    }
}


function move(parent, element, before) {
    const focused = document.activeElement;
    const inside = element.contains(focused);

    if (parent.moveBefore && element.isConnected && parent.isConnected) {
        parent.moveBefore(element, before);
    } else {
        parent.insertBefore(element, before);
    }

    if (inside && document.activeElement !== focused) {
        focused.focus({ preventScroll: true });
    }
}


// A table that stays one when the narrow layout shows its rows as cards.
function table(caption, columns) {
    const body = h("tbody", { role: "rowgroup" });
    const heads = columns.map(([name, label]) =>
        h("th", { scope: "col", role: "columnheader", class: `c-${name}` },
          label));
    const element = h("table", { role: "table" },
        h("caption", { class: "sr-only" }, caption),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
        body);

    return { element, body, row: () => tableRow(columns) };
}


// cells by the name of their column
function tableRow(columns) {
    const row = h("tr", { role: "row" });
    row.parts = {};

    for (const [name, label, head] of columns) {
        const cell = head
            ? h("th", { scope: "row", role: "rowheader", class: `c-${name}` })
            : h("td", { role: "cell", class: `c-${name}`,
                        "data-label": label });
        row.parts[name] = cell;
        row.append(cell);
    }

    return row;
}


function badge(phase, isError) {
    return setBadge(h("span", {}), phase, isError);
}


function setBadge(element, phase, isError) {
    const glyph = phases[phase] ? phases[phase].glyph : "·";
    const label = phases[phase] ? phases[phase].label : visible(phase);
    const key = `${phase} ${isError}`;

    if (element.phase !== key) {
        element.phase = key;
        element.className = `badge ${phases[phase] ? phase : "unknown"}`
                            + (isError ? " is-error" : "");
        element.replaceChildren(
            h("span", { class: "glyph", "aria-hidden": "true" }, glyph),
            isError ? `${label}, error` : label);
    }

    return element;
}


const phases = {
    queued: { label: "queued", glyph: "○" },
    running: { label: "running", glyph: "◐" },
    input_required: { label: "needs input", glyph: "?" },
    completed: { label: "completed", glyph: "✓" },
    failed: { label: "failed", glyph: "✕" },
    cancelled: { label: "cancelled", glyph: "⊘" },
};


function isOver(task) {
    return ["completed", "failed", "cancelled"].includes(task.phase);
}


// A bar that says how far a task got, as far as that is known.
function progressBar() {
    const bar = h("progress", { max: 1 });
    const label = h("span", { class: "percent" });
    return h("span", { class: "bar" }, bar, label);
}


function setProgress(element, task) {
    const [bar, label] = element.children;
    const share = shareOf(task);

    show(element, share !== null || task.phase === "running");
    element.classList.toggle("paused", task.phase !== "running");

    if (share === null) {
        bar.removeAttribute("value");
        bar.setAttribute("aria-label", "progress unknown");
        put(label, "");

    } else {
        bar.value = share;
        bar.setAttribute("aria-label", "progress");
        put(label, task.total > 0 && task.total !== 1
            ? `${number(task.progress)} / ${number(task.total)}`
            : `${Math.floor(share * 100)}%`);
    }
}


function shareOf(task) {
    if (typeof task.progress !== "number") {
        return null;
    }

    const share = task.progress / (task.total > 0 ? task.total : 1);
    return share >= 0 && share <= 1 ? share : null;
}


const formatNumber = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });


function number(value) {
    return typeof value === "number" ? formatNumber.format(value) : "–";
}


function bytes(n) {
    const units = ["B", "KB", "MB", "GB"];
    let unit = 0;

    while (n >= 1024 && unit < units.length - 1) {
        n /= 1024;
        unit++;
    }

    return `${n < 10 && unit ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}


function button(label, onclick, props) {
    return h("button", { type: "button", onclick, ...props }, label);
}


async function copyText(text, what) {
    try {
        await navigator.clipboard.writeText(text);
        note(`Copied ${what}.`);

    } catch {
        // a page over plain HTTP from elsewhere has no clipboard
        const area = h("textarea", { class: "sr-only", value: text });
        document.body.append(area);
        area.select();
        const done = document.execCommand("copy");
        area.remove();
        note(done ? `Copied ${what}.`
                  : "Copying failed: the browser denied clipboard access.");
    }
}


function downloadFile(name, parts, type) {
    const url = URL.createObjectURL(new Blob(parts, { type }));
    const link = h("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}


// a short message that goes away by itself, read out by screen readers
function note(text, isError) {
    const notes = document.getElementById(isError ? "alerts" : "notes");
    const element = h("p", {}, said(text, "span"));

    notes.append(element);
    setTimeout(() => element.remove(), isError ? 12000 : 5000);

    while (notes.children.length > 3) {
        notes.firstChild.remove();
    }
}

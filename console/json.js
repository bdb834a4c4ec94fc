// JSON as text.  What tasks carry is shown as it was sent: a number with twenty
// digits stays as it is, which JSON.parse() would not let it.

// strings, and what has a meaning outside of them
const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;


// The members of an object, by their names, as text.
function membersOf(text) {
    const members = Object.create(null);
    let depth = 0;
    let name = null;
    let from = 0;

    for (const { 0: token, index } of text.matchAll(tokens)) {
        if (depth === 1 && name !== null && (token === "," || token === "}")) {
            members[name] = text.slice(from, index).trim();
            name = null;
        }

        if (token === "{" || token === "[") {
            depth++;
        } else if (token === "}" || token === "]") {
            depth--;
        } else if (depth === 1 && name === null && token[0] === "\"") {
            name = JSON.parse(token);
        } else if (depth === 1 && token === ":") {
            from = index + 1;
        }
    }

    return members;
}


// With line breaks, and not a byte of a value changed.
function pretty(text) {
    const out = [];
    let depth = 0;
    let before = "";

    const line = () => out.push("\n", "  ".repeat(depth));

    for (const [token] of text.matchAll(tokens)) {
        if (token === "}" || token === "]") {
            depth--;

            if (before !== "{" && before !== "[") {
                line();
            }

        } else if (before === "{" || before === "[" || before === ",") {
            line();
        }

        out.push(token === ":" ? ": " : token);

        if (token === "{" || token === "[") {
            depth++;
        }

        before = token;
    }

    return out.join("");
}


// A text with buttons.  Of a long one the beginning is shown until somebody
// wants to see all of it: browsers lay out megabytes slowly.  box.setText()
// replaces the text, and lets the buttons be: somebody may be pressing one.
const longText = 20000;


function textBox(title, text, file, isJson) {
    let isWhole = false;
    const area = h("pre", { tabindex: "0", "aria-label": title });
    const size = h("span", { class: "muted small" });
    const all = button("", () => {
        isWhole = true;
        draw();
        area.focus();
    });

    const draw = () => {
        const whole = isJson ? pretty(text) : text;

        tell(area, isWhole ? whole : whole.slice(0, longText));
        put(all, `Show all ${bytes(whole.length)}`);
        show(all, !isWhole && whole.length > longText);
        put(size, `${isJson ? "JSON" : "text"}, `
                  + bytes(new Blob([text]).size));
    };

    const box = h("div", { class: "text-box" },
        h("div", { class: "text-tools" }, size, all,
          button("Copy", () => copyText(text, title), {
              "aria-label": `Copy ${title}` }),
          button("Download", () => downloadFile(file, [text],
              isJson ? "application/json" : "text/plain"), {
              "aria-label": `Download ${title}` })),
        area);

    box.setText = (changed) => {
        if (changed !== text) {
            text = changed;
            draw();
        }
    };

    draw();
    return box;
}


function jsonBox(title, text, file) {
    return textBox(title, text, `${file}.json`, true);
}

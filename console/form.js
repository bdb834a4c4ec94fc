// Questions of a task, as forms that are made of their schema, and answered.
// All kinds of fields that MCP has: strings with their formats, numbers, yes or
// no, one of several, some of several.

let fieldCount = 0;


// --- patterns

// A pattern comes from the worker, and one that backtracks without end would
// stop the page.  So only those are tried that cannot take long: no repeated
// group that repeats or chooses something itself, no reference back, and few
// ways to split a text of that length.  The others are shown as a hint.
function patternOf(source) {
    const bare = source.replace(/\\[1-9k]/g, "(?").replace(/\\./g, "x")
        .replace(/\[[^\]]*\]/g, "x").replace(/\(\?:/g, "(");
    const repeats = (bare.match(/[*+{]/g) || []).length;
    const maybes = (bare.match(/\?/g) || []).length;
    const isSafe = source.length <= 500 && maybes <= 12
        && !bare.includes("(?")
        && !/[*+?}|][^()]*\)[*+{]/.test(bare)
        && !/\)[^()]*\)[*+{]/.test(bare);

    return (value) => {
        if (!isSafe || value.length ** (repeats + 1) > 1e8) {
            return true;
        }

        try {
            return new RegExp(source, "u").test(value);
        } catch {
            return true;
        }
    };
}


// --- kinds of fields

// Each makes { input, focus, read }: read() gives { value }, or { error }, or
// nothing at all if it was left empty.

function optionsOf(schema) {
    if (Array.isArray(schema.oneOf || schema.anyOf)) {
        return (schema.oneOf || schema.anyOf).map((option) =>
            ({ value: option.const, title: option.title ?? option.const }));
    }

    if (Array.isArray(schema.enum)) {
        const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
        return schema.enum.map((value, i) =>
            ({ value, title: names[i] ?? value }));
    }

    return null;
}


function choiceField(id, schema, options, isRequired) {
    const names = options.map((option) => String(option.value));
    const given = names.indexOf(String(schema.default));
    const select = h("select", { id },
        isRequired && given >= 0 ? null
            : h("option", { value: "" }, isRequired ? "choose…" : "no answer"),
        options.map((option, i) =>
            h("option", { value: String(i) }, visible(option.title))));

    select.value = given >= 0 ? String(given) : "";

    return {
        input: select,
        focus: select,
        read: () => select.value === "" ? {}
            : { value: options[Number(select.value)].value },
    };
}


function choicesField(id, schema, options) {
    const chosen = new Set(
        (Array.isArray(schema.default) ? schema.default : []).map(String));
    const boxes = options.map((option, i) =>
        h("input", { type: "checkbox", id: `${id}-${i}`,
                     checked: chosen.has(String(option.value)) }));
    const group = h("div", { class: "choices", id, role: "group" },
        options.map((option, i) =>
            h("label", { class: "check", for: `${id}-${i}` }, boxes[i],
              said(option.title))));

    return {
        input: group,
        focus: boxes[0] || group,
        read: () => {
            const value = options.filter((option, i) => boxes[i].checked)
                .map((option) => option.value);
            const { minItems, maxItems } = schema;

            if (value.length < minItems) {
                return value.length === 0 ? { empty: true, value }
                    : { error: `Choose at least ${minItems}.` };
            }

            if (value.length > maxItems) {
                return { error: `Choose at most ${maxItems}.` };
            }

            return { value };
        },
    };
}


function booleanField(id, schema, isRequired) {
    const answers = [["true", "yes"], ["false", "no"]];
    const name = `${id}-answer`;
    const radios = answers.map(([value]) =>
        h("input", { type: "radio", name, id: `${id}-${value}`, value,
                     checked: String(schema.default) === value }));
    const group = h("div", { class: "choices inline", id, role: "radiogroup" },
        answers.map(([value, label], i) =>
            h("label", { class: "check", for: `${id}-${value}` }, radios[i],
              label)),
        isRequired ? null : button("no answer", () => {
            radios.forEach((radio) => { radio.checked = false; });
        }, { class: "quiet" }));

    return {
        input: group,
        focus: radios[0],
        read: () => {
            const radio = radios.find((one) => one.checked);
            return radio ? { value: radio.value === "true" } : {};
        },
    };
}


function numberField(id, schema) {
    const whole = schema.type === "integer";
    const input = h("input", { type: "text", id, autocomplete: "off",
                               inputmode: whole ? "numeric" : "decimal" });

    input.value = typeof schema.default === "number" ? schema.default : "";

    return {
        input,
        focus: input,
        read: () => {
            const text = input.value.trim();
            return text === "" ? {} : readNumber(text, schema, whole);
        },
    };
}


function readNumber(text, schema, whole) {
    if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)
        || !Number.isFinite(Number(text)))
    {
        return { error: "Enter a number." };
    }

    const value = Number(text);

    if (whole && !Number.isInteger(value)) {
        return { error: "Enter a whole number." };
    }

    if (value < schema.minimum) {
        return { error: `Must be at least ${schema.minimum}.` };
    }

    if (value <= schema.exclusiveMinimum) {
        return { error: `Must be greater than ${schema.exclusiveMinimum}.` };
    }

    if (value > schema.maximum) {
        return { error: `Must be at most ${schema.maximum}.` };
    }

    if (value >= schema.exclusiveMaximum) {
        return { error: `Must be less than ${schema.exclusiveMaximum}.` };
    }

    // digits that a number of JavaScript has not
    if (whole && !Number.isSafeInteger(value)) {
        return JSON.rawJSON && /^-?[1-9]\d*$/.test(text)
            ? { value: JSON.rawJSON(text) }
            : { error: "The number is too large." };
    }

    return { value };
}


const formats = {
    email: ["email", /^[^\s@]+@[^\s@]+$/,
            "an email address such as ann@example.org"],
    uri: ["url", /^[a-z][a-z0-9+.-]*:\S+$/i,
          "a URI such as https://example.org/"],
    date: ["date", /^\d{4}-\d\d-\d\d$/, "a date such as 2026-11-30"],
    "date-time": ["datetime-local", null, "a date and a time"],
};


function stringField(id, schema) {
    const format = Object.hasOwn(formats, schema.format)
        ? formats[schema.format] : null;
    const isLong = !format && !(schema.maxLength <= 120);
    const input = isLong
        ? h("textarea", { id, rows: schema.maxLength > 500 ? 5 : 2 })
        : h("input", { type: format ? format[0] : "text", id,
                       autocomplete: "off" });

    if (format && format[0] === "datetime-local") {
        input.step = "1";
    }

    if (typeof schema.default === "string") {
        input.value = schema.format === "date-time"
            ? localTime(schema.default) : schema.default;
    }

    const matches = typeof schema.pattern === "string"
        ? patternOf(schema.pattern) : () => true;

    return {
        input,
        focus: input,
        read: () => readString(input, schema, format, matches),
    };
}


function readString(input, schema, format, matches) {
    // what a browser could not read as a date is an empty value
    if (input.value === "") {
        return input.validity.badInput ? { error: `Enter ${format[2]}.` } : {};
    }

    if (schema.format === "date-time") {
        return { value: new Date(input.value).toISOString() };
    }

    // as JSON Schema counts them
    const length = [...input.value].length;

    if (length < schema.minLength) {
        return { error: `Must have at least ${schema.minLength} characters.` };
    }

    if (length > schema.maxLength) {
        return { error: `Must have at most ${schema.maxLength} characters,`
                        + ` has ${length}.` };
    }

    if (format && format[1] && !format[1].test(input.value)) {
        return { error: `Enter ${format[2]}.` };
    }

    if (!matches(input.value)) {
        return { error: `Must match ${visible(schema.pattern)}.` };
    }

    return { value: input.value };
}


// what a field for date and time takes: of here, without a zone
function localTime(text) {
    const date = new Date(text);

    if (Number.isNaN(date.getTime())) {
        return "";
    }

    date.setMinutes(date.getMinutes() - date.getTimezoneOffset());
    return date.toISOString().slice(0, 19);
}


// what no form can be made of
function jsonField(id, schema) {
    const input = h("textarea", { id, rows: 4, class: "code",
                                  spellcheck: "false" });

    input.value = schema.default === undefined ? ""
        : JSON.stringify(schema.default, null, 2);

    return {
        input,
        focus: input,
        read: () => {
            if (input.value.trim() === "") {
                return {};
            }

            try {
                return { value: JSON.parse(input.value) };
            } catch {
                return { error: "Enter valid JSON." };
            }
        },
    };
}


function fieldOf(id, schema, isRequired) {
    const options = optionsOf(schema);

    if (schema.type === "array") {
        const choices = optionsOf(schema.items || {});
        return choices ? choicesField(id, schema, choices)
                       : jsonField(id, schema);
    }

    if (options) {
        return choiceField(id, schema, options, isRequired);
    }

    switch (schema.type) {
    case "boolean": return booleanField(id, schema, isRequired);
    case "integer":
    case "number": return numberField(id, schema);
    case "string": return stringField(id, schema);
    default: return jsonField(id, schema);
    }
}


function hintOf(schema) {
    const hints = [];
    const range = (least, most, what) => {
        if (least !== undefined && most !== undefined) {
            hints.push(`${least} to ${most}${what}`);
        } else if (least !== undefined) {
            hints.push(`at least ${least}${what}`);
        } else if (most !== undefined) {
            hints.push(`at most ${most}${what}`);
        }
    };

    range(schema.minLength, schema.maxLength, " characters");
    range(schema.minimum, schema.maximum, "");
    range(schema.minItems, schema.maxItems, " items");

    if (schema.type === "integer") {
        hints.push("a whole number");
    }

    if (typeof schema.pattern === "string") {
        hints.push(`matching ${schema.pattern}`);
    }

    return hints.join(", ");
}


// --- a field with its label, description, and what is wrong with it

function makeField(name, schema, isRequired) {
    const id = `field-${++fieldCount}`;
    const made = fieldOf(id, schema, isRequired);
    const hint = hintOf(schema);
    const problem = h("p", { class: "problem", id: `${id}-problem`,
                             hidden: true });
    const help = h("p", { class: "help", id: `${id}-help` });
    const isGroup = made.input.hasAttribute("role");
    const label = h(isGroup ? "span" : "label",
        isGroup ? { id: `${id}-label`, class: "label" } : { for: id },
        said(schema.title || name),
        isRequired ? h("span", { class: "required" }, " required") : null);

    if (schema.description) {
        help.append(said(schema.description, "span"), " ");
    }

    if (hint) {
        help.append(said(`(${hint})`, "span", "said muted"));
    }

    made.focus.setAttribute("aria-describedby", `${help.id} ${problem.id}`);

    if (isGroup) {
        made.input.setAttribute("aria-labelledby", label.id);
    } else if (isRequired) {
        made.input.setAttribute("aria-required", "true");
    }

    return {
        name,
        element: h("div", { class: "form-field" }, label,
                   help.firstChild ? help : null, made.input, problem),
        focus: made.focus,
        read() {
            const got = made.read();
            const missing = isRequired
                && (got.value === undefined || got.empty) && !got.error;
            const text = got.error
                || (missing ? "This field is required." : "");

            put(problem, text);
            show(problem, text !== "");
            made.focus.setAttribute("aria-invalid", String(text !== ""));
            return { value: got.empty ? undefined : got.value,
                     isWrong: text !== "" };
        },
    };
}


// the fields of a schema, and their values, or null if any is wrong
function makeFields(schema) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    const fields = Object.entries(schema.properties || {}).map(
        ([name, property]) => makeField(name, property || {},
                                        required.includes(name)));

    return {
        elements: fields.map((one) => one.element),
        read() {
            const content = Object.create(null);
            let wrong = null;

            for (const one of fields) {
                const { value, isWrong } = one.read();

                if (isWrong) {
                    wrong = wrong || one;
                } else if (value !== undefined) {
                    content[one.name] = value;
                }
            }

            if (wrong) {
                wrong.focus.focus();
            }

            return wrong ? null : content;
        },
    };
}


// --- questions

// answer(text) sends what is said to this question, as JSON
function makeQuestion(key, question, raw, answer) {
    const params = question.params || {};

    return h("form", { class: "question", novalidate: true,
                       "aria-label": visible(`Question ${key}`),
                       onsubmit: (event) => event.preventDefault() },
        h("header", {}, h("h3", {}, said(key)),
          h("code", { class: "muted small" }, visible(question.method))),
        params.message === undefined ? null
            : said(params.message, "p", "said lines"),
        questionParts(question, params, raw, answer));
}


function questionParts(question, params, raw, answer) {
    if (!zone.admin) {
        return jsonBox("the question", raw, "question");
    }

    if (question.method !== "elicitation/create") {
        return rawQuestion(question, raw, answer);
    }

    if (params.mode === "url") {
        return urlQuestion(params, answer);
    }

    try {
        return formQuestion(params, answer);
    } catch {
        // not a schema as MCP has them: one may answer it all the same
        return rawQuestion(question, raw, answer);
    }
}


function actionButtons(label, onaccept, answer) {
    const accept = button(label, onaccept, { class: "primary" });
    accept.type = "submit";

    return h("div", { class: "buttons" },
        accept,
        button("Decline", () => answer("{\"action\":\"decline\"}")),
        button("Dismiss", () => answer("{\"action\":\"cancel\"}"), {
            title: "Send the action \"cancel\": neither accept nor decline" }));
}


function formQuestion(params, answer) {
    const fields = makeFields(params.requestedSchema || {});

    return [...fields.elements, actionButtons("Send answer", () => {
        const content = fields.read();

        if (content) {
            answer(JSON.stringify({ action: "accept", content }));
        }
    }, answer)];
}


// Only to where a browser would go anyway, and never by itself.
function urlQuestion(params, answer) {
    let url = null;

    try {
        url = new URL(params.url);
    } catch {
        // shown as it is
    }

    const isWeb = url && /^https?:$/.test(url.protocol);

    return [
        h("p", { class: "address" }, said(params.url ?? "", "code")),
        isWeb ? h("p", {}, "Host: ", said(url.host, "b"), ". ",
                  h("a", { href: url.href, target: "_blank",
                           rel: "noopener noreferrer" },
                    "Open in a new tab"))
              : h("p", { class: "problem" },
                  "This is not an HTTP or HTTPS URL."),
        actionButtons("Done", () =>
            answer("{\"action\":\"accept\"}"), answer),
    ];
}


const rawAnswers = {
    "sampling/createMessage": {
        role: "assistant", content: { type: "text", text: "" },
        model: "operator",
    },
    "roots/list": { roots: [] },
    "elicitation/create": { action: "decline" },
};


function rawQuestion(question, raw, answer) {
    const id = `field-${++fieldCount}`;
    const known = Object.hasOwn(rawAnswers, question.method)
        ? rawAnswers[question.method] : {};
    const input = h("textarea", { id, rows: 6, class: "code",
                                  spellcheck: "false",
                                  "aria-describedby": `${id}-problem` });
    const problem = h("p", { class: "problem", id: `${id}-problem`,
                             hidden: true });
    const send = button("Send answer", () => {
        let value = null;

        try {
            value = JSON.parse(input.value);
        } catch {
            // said below
        }

        const isObject = value !== null && typeof value === "object"
                         && !Array.isArray(value);
        put(problem, isObject ? "" : "The answer must be a JSON object.");
        show(problem, !isObject);

        if (isObject) {
            answer(input.value);
        } else {
            input.focus();
        }
    }, { class: "primary" });

    send.type = "submit";
    input.value = JSON.stringify(known, null, 2);

    return [
        jsonBox("the question", raw, "question"),
        h("div", { class: "form-field" },
          h("label", { for: id }, "Answer (JSON)"), input, problem),
        h("div", { class: "buttons" }, send),
    ];
}

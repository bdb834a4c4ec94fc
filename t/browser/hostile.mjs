// Markup, scripts, marks of direction, controls and very long words in all that
// others can write: everywhere it is text, and stays in its place.

import { claim, create, fine, held, is, markup, ok, open, row, run, shown }
    from "./lib.mjs";

const script = "<script>pwned=1</script>";
const evil = `${markup}${script}"'\`\${pwned=1}javascript:pwned=1`;
const turned = `right\u202eto\u2066left\u200b${evil}\u0007\u009b\u2028end`;
const long = `${"w".repeat(900)}`;


// the same in all its fields
const hostileQuestion = (words) => ({
    method: "elicitation/create",
    params: { message: words, requestedSchema: {
        type: "object", required: [words], properties: {
            [words]: { type: "string", title: words, description: words,
                       default: words },
            pick: { type: "string", title: words, enum: [words, "b"],
                    enumNames: [words, words] },
            one: { type: "string", oneOf: [{ const: words, title: words }] },
            many: { type: "array", title: words,
                    items: { anyOf: [{ const: words, title: words }] } },
            ["__proto__"]: { type: "string", title: "proto" },
            constructor: { type: "boolean", title: words },
            odd: { type: "string", title: words, enum: [words], format: words,
                   pattern: words },
        } } },
});


// what is no schema, or none as MCP has them
const wrongSchemas = {
    word: "x", list: [1], nothing: null, names: { properties: "abc" },
    inner: { type: "object", required: "a", properties: {
        a: null, b: 7, c: { enum: [null, { x: 1 }] }, d: { type: "array" },
        e: { type: "string", minLength: {}, maxLength: "x", pattern: 1 },
        f: { type: "integer", minimum: "x", default: "1" } } },
    breaks: { properties: { a: { oneOf: [null] } } },
    items: { properties: { a: { type: "array", items: { anyOf: [null] } } } },
    kinds: { properties: { a: { type: evil, title: evil, format: evil,
                                pattern: evil } } },
};


// what a database may have, and nobody can ask
const stored = {
    script: { method: "elicitation/create",
              params: { mode: "url", message: evil, elicitationId: evil,
                        url: "javascript:pwned=1" } },
    url: { method: "elicitation/create",
           params: { mode: "url", message: evil, elicitationId: evil,
                     url: `https://${long}/${evil}` } },
    odd: { method: evil, params: { evil } },
    empty: { method: "elicitation/create", params: {} },
    ...Object.fromEntries(Object.entries(wrongSchemas).map(
        ([name, requestedSchema]) => [name, {
            method: "elicitation/create",
            params: { message: {}, requestedSchema } }])),
};


const withStored = (text) => {
    const task = JSON.parse(text);
    return JSON.stringify(task.inputRequests ? {
        ...task, inputRequests: { ...task.inputRequests, ...stored } } : task);
};


async function hostileTasks() {
    const tasks = {};
    const options = { owner: `${markup}${script}`,
                      metadata: { [evil]: turned } };

    for (const name of ["running", "asking", "done", "failed"]) {
        tasks[name] = await create(markup, { [evil]: turned, long },
                                   options);
    }

    for (const name of ["running", "asking", "done", "failed"]) {
        const task = await claim(markup, markup);
        is(task.taskId, tasks[name], `${name}: claimed`);
        await held("progress", task, { message: `${turned}${long}`
            .slice(0, 700) });

        if (name === "asking") {
            await held("ask", task, { inputRequests: {
                [evil]: hostileQuestion(turned),
                long: hostileQuestion(long),
            } });
        }

        if (name === "done") {
            await held("complete", task, { result: {
                content: [{ type: "text", text: `${turned}${long}` },
                          { type: evil, mimeType: evil, data: evil, uri: evil },
                          { type: "resource", resource: { uri: evil,
                            text: evil, mimeType: evil } },
                          null, 7, "x"].filter((block) => block),
                structuredContent: { [evil]: evil }, _meta: { [evil]: 1 } } });
        }

        if (name === "failed") {
            await held("fail", task, { error: {
                code: -32050, message: `${turned}${long}`,
                data: { [evil]: long } } });
        }
    }

    return tasks;
}


const overflow = (page) => page.locator(":root").evaluate((root) =>
    root.scrollWidth - root.clientWidth);


// some words that would be there if markup was text
async function look(page, name) {
    await shown(page.getByText(markup).first(), `${name}: markup is text`);
    is(await page.evaluate(() => document.querySelectorAll(
        "main img, main script, main iframe, main style, main [onerror]")
        .length), 0, `${name}: and nothing else`);
    is(await overflow(page), 0, `${name}: it stays in its place`);
}


async function inTheList(browser, tasks, options) {
    const page = await open(browser, "/console/", options);

    for (const id of Object.values(tasks)) {
        await shown(row(page, id), "list: a hostile task");
    }

    await shown(row(page, tasks.running).getByText("⟨202E⟩"),
                "list: marks of direction are seen");
    await look(page, "list");

    // a filter for such a name, by its address
    await page.goto(`${page.url().split("#")[0]}#/tasks?`
                    + new URLSearchParams({ tool: markup, status: evil,
                                            minAge: evil }));
    await shown(page.getByText("4 tasks"), "list: a hostile filter");
    await fine(page, "list");
}


async function onItsPage(browser, tasks, options) {
    for (const [name, id] of Object.entries(tasks)) {
        const page = await open(browser, `/console/#/task/${id}`,
                                { ...options, rewrite: withStored });
        await shown(page.locator("h1").getByText(markup), `${name}: the tool`);
        await shown(page.locator(".facts").getByText(script).first(),
                    `${name}: the owner`);
        await page.locator(".s-raw summary").click();

        for (const all of await page.getByRole("button", { name: /^Show all/ })
            .all())
        {
            await all.click();
        }

        await look(page, name);

        if (name === "asking" && !options.viewport) {
            await answers(page);
        }

        await fine(page, name);
    }
}


async function answers(page) {
    const form = page.locator("form.question").first();
    await shown(form.getByText("⟨202E⟩").first(), "asking: marks are seen");
    is(await page.locator("form.question").count(),
       2 + Object.keys(stored).length, "asking: every question is there");
    await shown(page.getByRole("form", { name: "Question breaks" })
        .getByLabel("Answer (JSON)"), "asking: what is no form takes JSON");
    is(await form.locator("select option").first().evaluate((option) =>
        option.children.length), 0, "asking: options are text");
    is(await page.getByRole("link", { name: /Open/ }).evaluateAll((links) =>
        links.map((link) => link.protocol)), ["https:"],
       "asking: no link but to a web page");
    await form.getByRole("button", { name: "Send answer" }).click();
}


async function inTheQueues(browser, options) {
    const page = await open(browser, "/console/#/queues", options);
    await shown(page.getByRole("row").filter({ hasText: markup }).first(),
                "queues: a hostile tool");
    await shown(page.locator("h1", { hasText: "Workers" }), "queues: workers");
    is(await page.getByRole("rowheader").filter({ hasText: markup }).count(), 2,
       "queues: and a hostile worker");
    await look(page, "queues");
    const pause = page.getByRole("row").filter({ hasText: markup }).first()
        .getByRole("button");
    await pause.click();
    await shown(page.getByText(`${markup} is paused`), "queues: it is named");
    await pause.click();
    await shown(page.getByText(`${markup} is resumed`), "queues: and again");
    await fine(page, "queues");
}


// an address that somebody was sent
async function byAddress(browser) {
    for (const hash of [`#/task/${encodeURIComponent(evil)}`, `#/${evil}`,
                        "#/task/%E0%A4%A", "#/__proto__", "#/task/../zone"])
    {
        const page = await open(browser, "/console/");
        await page.evaluate((to) => { location.hash = to; }, hash);
        await page.locator("main > :is(section, article)").waitFor();
        await fine(page, `address ${hash.slice(0, 20)}`);
    }
}


await run(async (browser) => {
    const tasks = await hostileTasks();
    const phone = { viewport: { width: 375, height: 740 } };

    ok(Object.keys(tasks).length === 4, "tasks with hostile words");

    for (const options of [{}, phone]) {
        await inTheList(browser, tasks, options);
        await onItsPage(browser, tasks, options);
        await inTheQueues(browser, options);
    }

    await byAddress(browser);
});

// The page of a task: questions, what can be done with it, and the queues.

import { readFile } from "node:fs/promises";

import { claim, create, fine, gone, held, is, ok, open, row, run, send, shown,
         text, until, work } from "./lib.mjs";

const taskPage = (id) => `/console/#/task/${id}`;
const badge = (page) => page.locator(".task-title .badge");
const press = (page, name) => page.getByRole("button", { name, exact: true })
    .click();


// --- questions

// every kind of field that there is
const everything = {
    type: "object",
    required: ["name", "seat", "extras", "agree", "big"],
    properties: {
        name: { type: "string", title: "Full name", description: "As written",
                minLength: 2, maxLength: 20 },
        story: { type: "string", title: "Story" },
        mail: { type: "string", title: "Mail", format: "email" },
        site: { type: "string", title: "Site", format: "uri" },
        day: { type: "string", title: "Day", format: "date" },
        at: { type: "string", title: "At", format: "date-time" },
        code: { type: "string", title: "Code", pattern: "^[A-Z]{3}$",
                maxLength: 9 },
        bags: { type: "integer", title: "Bags", minimum: 0, maximum: 3 },
        price: { type: "number", title: "Price", maximum: 99.5 },
        big: { type: "integer", title: "Big" },
        agree: { type: "boolean", title: "Agreed" },
        maybe: { type: "boolean", title: "Maybe", default: true },
        seat: { type: "string", title: "Seat", enum: ["a", "w"],
                enumNames: ["Aisle", "Window"] },
        row: { type: "string", title: "Row", enum: ["front", "back"],
               default: "back" },
        klass: { type: "string", title: "Class", oneOf: [
            { const: "e", title: "Economy" },
            { const: "b", title: "Business" }] },
        extras: { type: "array", title: "Extras", minItems: 1, maxItems: 2,
                  items: { type: "string", enum: ["wifi", "meal", "lounge"] } },
        options: { type: "array", title: "Options", default: ["x"],
                   items: { anyOf: [{ const: "x", title: "Insurance" },
                                    { const: "y", title: "Upgrade" }] } },
        left: { type: "string", title: "Left out" },
    },
};

const questions = {
    form: { method: "elicitation/create",
            params: { mode: "form", message: "Tell me\neverything",
                      requestedSchema: everything } },
    // as the revision of 2025 has it: without a mode
    old: { method: "elicitation/create",
           params: { message: "Old", requestedSchema: {
               type: "object", properties: { yes: { type: "boolean" } } } } },
    no: { method: "elicitation/create",
          params: { mode: "form", message: "No?", requestedSchema: {
              type: "object", properties: {} } } },
    url: { method: "elicitation/create",
           params: { mode: "url", message: "Go there", elicitationId: "e",
                     url: "https://pay.example/cart?id=1" } },
    trap: { method: "elicitation/create",
            params: { mode: "url", message: "Do not", elicitationId: "f",
                      url: "https://trap.example/" } },
    think: { method: "sampling/createMessage",
             params: { messages: [], maxTokens: 1 } },
    roots: { method: "roots/list", params: {} },
};


async function fillWrongly(form) {
    await form.getByLabel("Full name").fill("A");
    await form.getByLabel("Mail").fill("nobody");
    await form.getByLabel("Site").fill("no address");
    await form.getByLabel("Code").fill("ab");
    await form.getByLabel("Bags").fill("4");
    await form.getByLabel("Price").fill("12,50");
    await form.getByLabel("Big").fill("1.5");

    for (const name of ["wifi", "meal", "lounge"]) {
        await form.getByLabel(name).check();
    }

    await form.getByRole("button", { name: "Send answer" }).click();
    is(await form.locator(".problem:visible").allInnerTexts(), [
        "Must have at least 2 characters.",
        "Enter an email address such as ann@example.org.",
        "Enter a URI such as https://example.org/.", "Must match ^[A-Z]{3}$.",
        "Must be at most 3.", "Enter a number.", "Enter a whole number.",
        "This field is required.", "This field is required.",
        "Choose at most 2.",
    ], "what is wrong is said beside each field");
    ok(await form.getByLabel("Full name").evaluate((input) =>
        input === document.activeElement), "and the first has the focus");
}


async function fillRightly(form) {
    await form.getByLabel("Full name").fill("Ann Ö.");
    await form.getByLabel("Story").fill("one\ntwo");
    await form.getByLabel("Mail").fill("ann@example.org");
    await form.getByLabel("Site").fill("https://example.org/a");
    await form.getByLabel("Day").fill("2026-12-01");
    await form.getByLabel("At", { exact: true }).fill("2026-12-01T10:30:15");
    await form.getByLabel("Code").fill("ABC");
    await form.getByLabel("Bags").fill("3");
    await form.getByLabel("Price").fill("12.5");
    await form.getByLabel("Big").fill("12345678901234567890");
    await form.getByRole("radiogroup", { name: "Agreed" })
        .getByLabel("no", { exact: true }).check();
    await form.getByLabel("Seat").selectOption({ label: "Window" });
    await form.getByLabel("Class").selectOption({ label: "Business" });
    await form.getByLabel("wifi").uncheck();
    await form.getByLabel("Upgrade").check();
    await form.getByRole("button", { name: "Send answer" }).click();
}


// the others, each in its way
async function answerOthers(page) {
    const question = (name) => page.getByRole("form", {
        name: `Question ${name}` });

    await question("old").getByRole("radio", { name: "yes" }).check();
    await press(question("old"), "Send answer");
    await gone(question("old"), "a question without a mode");
    await press(question("no"), "Decline");
    await gone(question("no"), "declined");

    is(await question("url").getByRole("link").getAttribute("href"),
       "https://pay.example/cart?id=1", "an address to open");
    await press(question("url"), "Done");
    await gone(question("url"), "and done there");

    is(await question("trap").getByRole("link").count(), 0,
       "a script is no address");
    await press(question("trap"), "Dismiss");
    await gone(question("trap"), "dismissed");

    await question("think").getByLabel("Answer (JSON)").fill("[]");
    await press(question("think"), "Send answer");
    await shown(question("think").getByText("must be a JSON object"),
                "an answer that is none");
    await question("think").getByLabel("Answer (JSON)")
        .fill("{\"n\":12345678901234567890}");
    await press(question("think"), "Send answer");
    await gone(question("think"), "an answer as JSON");
    await press(question("roots"), "Send answer");
}


async function asks(browser) {
    const id = await create("asks", {});
    const page = await open(browser, taskPage(id), { rewrite: (text) =>
        text.replace("https://trap.example/", "javascript:pwned=1") });
    const task = await claim("asks");
    await held("ask", task, { inputRequests: questions });

    const form = page.getByRole("form", { name: "Question form" });
    await form.waitFor();
    await shown(form.getByText("Tell me everything"), "with a message");
    await fillWrongly(form);

    // what somebody has written stays when the task changes
    await held("progress", task, { message: "still here" });
    await shown(page.getByText("still here"), "the task changes");
    is(await form.getByLabel("Code").inputValue(), "ab", "not what is written");
    await fillRightly(form);
    await gone(form, "the form was taken");
    await answerOthers(page);
    await shown(badge(page).getByText("running"), "the task goes on");

    const answers = await send("POST", "/worker", JSON.stringify({
        jsonrpc: "2.0", id: 1, method: "worker/answers",
        params: { taskId: task.taskId, lease: task.lease, waitMs: 10000 } }));
    checkAnswers(answers);

    await held("complete", task, { result: text("All is well") });
    await shown(page.locator(".s-result").getByText("All is well"),
                "and its result is shown");
    await shown(page.locator(".timeline").getByText("all answers received"),
                "it is in the history");
    await fine(page, "questions");
}


function checkAnswers({ json, text: raw }) {
    const { form, ...others } = json.result.inputResponses;
    const at = new Date("2026-12-01T10:30:15").toISOString();

    ok(raw.includes("\"big\":12345678901234567890")
       && raw.includes("\"n\":12345678901234567890"), "every digit arrives");
    delete form.content.big;
    delete others.think;
    is(form, { action: "accept", content: {
        name: "Ann Ö.", story: "one\ntwo", mail: "ann@example.org",
        site: "https://example.org/a", day: "2026-12-01", at, code: "ABC",
        bags: 3, price: 12.5, agree: false, maybe: true, seat: "w",
        row: "back", klass: "b", extras: ["meal", "lounge"],
        options: ["x", "y"] } }, "the worker gets what was filled in");
    is(others, {
        old: { action: "accept", content: { yes: true } },
        no: { action: "decline" }, url: { action: "accept" },
        trap: { action: "cancel" }, roots: { roots: [] },
    }, "and the other answers");
}


// a pattern that would take for ever is not tried
async function patterns(browser) {
    const id = await create("asks", {});
    const task = await claim("asks");
    await held("ask", task, { inputRequests: { slow: {
        method: "elicitation/create", params: { message: "?",
            requestedSchema: { type: "object", properties: {
                a: { type: "string", title: "Slow", maxLength: 99,
                     pattern: "^(a+|[(])+$", default: `${"a".repeat(60)}!` },
                b: { type: "string", title: "Slower", maxLength: 99,
                     pattern: "^a*a*a*a*a*a*a*$",
                     default: `${"a".repeat(60)}!` },
                c: { type: "string", title: "Wrong", pattern: "(",
                     maxLength: 9, default: "c" } } } } } } });
    const page = await open(browser, taskPage(id));
    await press(page, "Send answer");
    await shown(badge(page).getByText("running"), "no pattern stops the page");
    await fine(page, "patterns");
}


// --- what it carries

// made of two clocks, it may differ by a millisecond from one time to the next
const settled = (json) => json.replace(/"expiresAt":"[^"]*"/, "");


async function carries(browser) {
    const id = await create("render",
        "{\"n\":12345678901234567890,\"f\":1.0,\"s\":\"\\u00e9\"}",
        { owner: "ann", metadata: { project: "p" } });
    const page = await open(browser, taskPage(id), {
        permissions: ["clipboard-read", "clipboard-write"] });
    const args = page.locator(".s-arguments");

    is((await args.locator("pre").innerText()).split("\n"),
       ["{", "  \"n\": 12345678901234567890,", "  \"f\": 1.0,",
        "  \"s\": \"\\u00e9\"", "}"], "arguments, byte for byte");
    await shown(page.locator(".s-metadata").getByText("project"), "metadata");
    await shown(page.locator(".facts").getByText("ann", { exact: true }),
                "the owner");

    await args.getByRole("button", { name: "Copy" }).click();
    await shown(page.getByText("Copied the arguments."), "copied");
    is(await page.evaluate(() => navigator.clipboard.readText()),
       "{\"n\":12345678901234567890,\"f\":1.0,\"s\":\"\\u00e9\"}",
       "as they were sent");

    await page.locator(".s-raw summary").click();
    const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.locator(".s-raw").getByRole("button", { name: "Download" })
            .click(),
    ]);
    const { text: raw } = await send("GET", `/console/api/tasks/${id}`);
    is(settled(await readFile(await download.path(), "utf8")), settled(raw),
       "all of it is downloaded");
    is(download.suggestedFilename(), `${id.slice(0, 8)}.json`, "by its name");
    await fine(page, "what a task carries");
}


// what is shown changes, not the button that somebody is about to press
async function staysInPlace(browser) {
    const id = await create("paused", {});
    const task = await claim("paused");
    const page = await open(browser, taskPage(id));
    is(task.taskId, id, "a task that changes");

    await page.locator(".s-raw summary").click();
    const download = await page.locator(".s-raw").getByRole("button",
        { name: "Download" }).elementHandle();
    await held("progress", task, { message: "another word" });
    await shown(page.locator(".s-raw pre").getByText("another word"),
                "all of it is shown as it is now");
    ok(await download.evaluate((button) => button.isConnected),
       "with the same buttons");
    await held("complete", task, { result: text("") });
    await fine(page, "a task that changes");
}


async function results(browser) {
    const id = await create("paused", {});
    const task = await claim("paused");
    await held("complete", task, { result: {
        content: [{ type: "text", text: "x".repeat(50000) },
                  { type: "image", mimeType: "image/png",
                    data: "iVBORw0KGgo=" },
                  { type: "resource_link", uri: "https://example.org/x",
                    name: "x" }],
        structuredContent: { n: 1 }, isError: true } });
    const page = await open(browser, taskPage(id));
    const result = page.locator(".s-result");

    await shown(result.getByText("The tool reported an error."),
                "a result that is an error");
    await shown(result.getByText("8 B of data"), "an image is described");
    is(await page.locator("img").count(), 0, "and not loaded");
    await shown(result.getByText("https://example.org/x"), "a link is text");
    await shown(result.getByText("\"n\": 1"), "structured content");

    const pre = result.locator("pre").first();
    is((await pre.innerText()).length, 20000, "the beginning of a long text");
    await result.getByRole("button", { name: "Show all" }).first().click();
    is((await pre.innerText()).length, 50000, "and all of it");
    await fine(page, "results");
}


// --- what can be done

async function cancels(browser) {
    const id = await create("render", {});
    const page = await open(browser, taskPage(id));
    await press(page, "Cancel");
    const dialog = page.getByRole("dialog");
    await press(dialog, "Keep task");
    await gone(dialog, "one may think again");

    await press(page, "Cancel");
    await dialog.getByLabel("Reason").fill(`not <b>needed</b>`);
    await press(dialog, "Cancel task");
    await shown(badge(page).getByText("cancelled"), "a task is cancelled");
    await shown(page.locator(".task-view").getByText("not <b>needed</b>")
        .first(), "with a reason");
    await shown(page.locator(".timeline").getByText("cancelled").first(),
                "it is in the history");
    is(await page.getByRole("button", { name: "Cancel", exact: true }).count(),
       0, "it cannot be cancelled again");
    await fine(page, "cancelling");
}


async function retries(browser) {
    const id = await create("flaky", { a: 1 }, { owner: "ann" });
    const error = { code: -32050, message: "no disk", data: { free: 0 } };
    let task = await claim("flaky");
    await held("fail", task, { error, retryable: true, delayMs: 1 });
    task = await claim("flaky", "w-2");
    is([task.taskId, task.attempt], [id, 2], "the second attempt");
    await held("fail", task, { error });

    const page = await open(browser, taskPage(id));
    await shown(page.locator(".s-error").getByText("no disk"), "why it failed");
    await shown(page.locator(".s-error").getByText("\"free\": 0"), "in detail");
    const lines = await page.locator(".timeline li").allInnerTexts();
    is(lines.map((line) => line.split(/\s*\n/)[0].replace(/ [○◐✕].*/, "")),
       ["created", "claimed", "attempt failed, queued again", "claimed",
        "failed"], "the history");
    ok(/attempt 2, w-2$/.test(lines[3]), "with attempts and workers");

    await press(page, "Retry");
    await page.waitForURL((url) => !url.href.includes(id));
    await shown(badge(page).getByText("queued"), "a new task");
    await shown(page.locator(".s-arguments").getByText("\"a\": 1"),
                "with the same arguments");
    await shown(page.locator(".facts").getByText("ann", { exact: true }),
                "and owner");

    task = await claim("flaky");
    ok(page.url().endsWith(task.taskId), "that a worker gets");
    await fine(page, "retrying");
}


async function deletes(browser) {
    const id = await create("render", {});
    const page = await open(browser, "/console/#/tasks?tool=render");
    await row(page, id).locator("a").click();
    await press(page, "Delete");
    await press(page.getByRole("dialog"), "Delete");
    await page.waitForURL(/#\/tasks\?tool=render$/);
    await shown(page.getByText("The task was deleted."), "a task is deleted");
    await gone(row(page, id), "it is not in the list");
    is((await send("GET", `/console/api/tasks/${id}`)).status, 404,
       "nor anywhere");
    await fine(page, "deleting");
}


// --- queues and workers

async function pauses(browser) {
    const page = await open(browser, "/console/#/queues");
    await create("paused", {});
    const its = page.getByRole("row", { name: /^paused/ });
    await press(its, "Pause");
    await shown(its.getByText("paused").nth(1), "a tool is paused");
    is(await claim("paused", "w-1", 0), undefined, "nobody gets its tasks");

    await press(its, "Resume");
    await shown(its.getByText("active"), "and goes on");
    ok(await claim("paused"), "somebody gets one");
    await fine(page, "pausing");
}


// figures that are older than what was done do not undo it
async function staysPaused(browser) {
    const page = await open(browser, "/console/#/queues");
    const its = page.getByRole("row", { name: /^paused/ });
    await its.waitFor();

    // one answer is held back on its way to the page
    let reads = 0;
    let release;
    const released = new Promise((resolve) => { release = resolve; });
    await page.route("**/api/zone", async (route) => {
        const response = await route.fetch();
        if (++reads === 1) {
            await released;
        }
        await route.fulfill({ response });
    });
    await until(() => reads > 0);

    await press(its, "Pause");
    await shown(page.getByText("paused is paused"), "a tool is paused");
    await its.getByRole("button").evaluate((button) => {
        window.labels = [button.textContent];
        new MutationObserver(() => window.labels.push(button.textContent))
            .observe(button, { childList: true, subtree: true });
    });
    release();
    await shown(its.getByText("paused").nth(1), "as the figures say later");
    is(await page.evaluate(() => window.labels), ["Resume"],
       "and not what they said before");

    await press(its, "Resume");
    await shown(its.getByText("active"), "it goes on");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await fine(page, "pausing with old figures");
}


async function drains(browser) {
    const page = await open(browser, "/console/#/queues");
    await create("drained", {});
    await work("claim", { tools: ["none"], worker: "w-9" });
    const its = page.getByRole("row", { name: /^w-9/ });
    await press(its, "Drain");
    await shown(its.getByText("draining"), "a worker drains");

    const got = await work("claim", { tools: ["drained"], worker: "w-9",
                                      waitMs: 10000 });
    is([got.tasks, got.drain], [[], true], "it gets nothing, and is told");

    await press(its, "Resume");
    await shown(its.getByText("active"), "and is taken back");
    ok(await claim("drained", "w-9"), "it gets work again");
    await fine(page, "draining");
}


async function figures(browser) {
    const page = await open(browser, "/console/#/zone");
    await shown(page.getByRole("meter", { name: "Tasks" }), "use of slots");
    await shown(page.getByText("Recoveries after a crash"), "figures");
    await shown(page.getByRole("table", { name: "Time in the queue" }),
                "a histogram");
    await fine(page, "the zone");
}


// --- who may only look

const actions = /^(Cancel|Retry|Delete|Pause|Resume|Drain|Send|Decline|Done)/;


async function looksOn(browser) {
    const id = await create("asks", {});
    const task = await claim("asks");
    await held("ask", task, { inputRequests: { q: questions.old } });

    for (const [hash, sign] of [
        ["#/tasks", "tbody tr"], [`#/task/${id}`, ".question pre"],
        ["#/queues", "tbody tr"], ["#/zone", "meter"]])
    {
        const page = await open(browser, `/watch/${hash}`);
        await shown(page.getByText("read-only"), `${hash}: read-only`);
        await page.locator(sign).first().waitFor();
        const names = await page.getByRole("button").evaluateAll((buttons) =>
            buttons.map((button) => button.textContent));
        is(names.filter((name) => actions.test(name)), [],
           `${hash}: nothing to do there`);
        await fine(page, hash);
    }

    for (const [method, path] of [
        ["POST", `tasks/${id}/cancel`], ["POST", `tasks/${id}/retry`],
        ["POST", `tasks/${id}/input`], ["DELETE", `tasks/${id}`],
        ["POST", "tools/pause"], ["POST", "workers/drain"]])
    {
        const { status, json } = await send(method, `/watch/api/${path}`,
            method === "POST" ? "{\"tool\":\"asks\",\"worker\":\"w-1\"}"
                              : undefined);
        is([status, json && json.reason], [403, "read_only"],
           `${method} ${path} is refused`);
    }
}


await run(async (browser) => {
    await asks(browser);
    await patterns(browser);
    await carries(browser);
    await staysInPlace(browser);
    await results(browser);
    await cancels(browser);
    await retries(browser);
    await deletes(browser);
    await pauses(browser);
    await staysPaused(browser);
    await drains(browser);
    await figures(browser);
    await looksOn(browser);
});

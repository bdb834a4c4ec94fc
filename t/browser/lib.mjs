// What the scripts here share: a browser, a server to talk to as clients and
// workers do, and results that t/lib/MCPBrowser.pm reads.

import http from "node:http";
import { isDeepStrictEqual } from "node:util";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MCP_TASKS_PLAYWRIGHT}/`);
const { chromium } = require("playwright-core");

export const base = process.env.MCP_TASKS_URL;
export const pictures = process.env.MCP_TASKS_PICTURES;
export const markup = "<img src=x onerror=pwned=1>";


// --- results

export function ok(condition, name) {
    console.log(`${condition ? "ok" : "not ok"} - ${name}`);
    return Boolean(condition);
}


export function is(got, expected, name) {
    const same = isDeepStrictEqual(got, expected);
    ok(same, name);

    if (!same) {
        console.log(`# got ${JSON.stringify(got)},`
                    + ` expected ${JSON.stringify(expected)}`);
    }
}


// that something comes to be so
export async function becomes(what, name) {
    try {
        ok(await what() !== false, name);
    } catch (error) {
        ok(false, name);
        console.log(String(error.message).replace(/^/gm, "# "));
    }
}


// that a condition of this script's own is met: whether it was, in time
export async function until(condition) {
    const end = Date.now() + 20000;

    while (!condition()) {
        if (Date.now() > end) {
            return false;
        }
        await new Promise((resolve) => { setTimeout(resolve, 20); });
    }

    return true;
}


export const shown = (locator, name) =>
    becomes(() => locator.first().waitFor({ timeout: 20000 }), name);

export const gone = (locator, name) =>
    becomes(() => locator.first().waitFor({ state: "detached",
                                            timeout: 20000 }), name);


// --- the server

// Each request over a connection of its own, to whichever process takes it.
export function send(method, path, body, headers = {}) {
    return new Promise((resolve, reject) => {
        const type = body === undefined ? {}
            : { "Content-Type": "application/json" };
        const request = http.request(`${base}${path}`, {
            method, agent: false, headers: { ...type, ...headers },
        }, (response) => {
            let text = "";
            response.setEncoding("utf8");
            response.on("data", (data) => { text += data; });
            response.on("end", () => resolve({
                status: response.statusCode, headers: response.headers, text,
                json: /json/.test(response.headers["content-type"])
                    ? JSON.parse(text) : null }));
        });

        request.on("error", reject);
        request.end(body);
    });
}


// args may be text, which is sent as it is
export async function create(tool, args = {}, { owner, ...more } = {}) {
    const text = typeof args === "string" ? args : JSON.stringify(args);
    const rest = JSON.stringify({ tool, ...more }).slice(0, -1);
    const headers = owner === undefined ? {}
        : { "X-User": Buffer.from(owner, "utf8").toString("latin1") };
    const { json } = await send("POST", "/mcp/tasks",
                                `${rest},"arguments":${text}}`, headers);

    if (!json || !json.taskId) {
        throw new Error(`no task: ${JSON.stringify(json)}`);
    }

    return json.taskId;
}


export async function work(method, params) {
    const { json } = await send("POST", "/worker", JSON.stringify(
        { jsonrpc: "2.0", id: 1, method: `worker/${method}`, params }));
    return json.result || { error: json.error };
}


export async function claim(tool, worker = "w-1", waitMs = 10000) {
    const got = await work("claim", { tools: [tool], worker, waitMs,
                                      leaseMs: 600000 });
    return got.tasks[0];
}


// what the worker says of a task that it holds
export function held(method, task, params) {
    return work(method, { taskId: task.taskId, lease: task.lease, ...params });
}


export const text = (words) => ({ content: [{ type: "text", text: words }] });


// --- the browser

const complaints = [];


// A page of the console.  Whatever goes wrong in it is remembered.  What it
// reads of a task may be rewritten: a database may have what nobody can send.
export async function open(browser, path, { rewrite, ...options } = {}) {
    const context = await browser.newContext({
        viewport: { width: 1280, height: 900 }, ...options });

    const complain = (what) => complaints.push(what);

    if (rewrite) {
        await context.route(/\/api\/tasks\/[-0-9a-f]+$/, async (route) => {
            try {
                const response = await route.fetch();
                await route.fulfill({ response,
                                      body: rewrite(await response.text()) });
            } catch (error) {
                // the page may be closed while it reads a task
                if (!/has been (closed|disposed)/.test(error.message)) {
                    complain(`route: ${error.stack}`);
                }
            }
        });
    }

    const page = await context.newPage();

    page.setDefaultTimeout(20000);
    page.on("console", (message) => {
        if (/error|warning/.test(message.type())) {
            complain(`console: ${message.text()}`);
        }
    });
    page.on("pageerror", (error) => complain(`error: ${error.stack}`));
    page.on("dialog", (dialog) => {
        complain(`dialog: ${dialog.message()}`);
        dialog.dismiss();
    });
    page.on("request", (request) => {
        if (!/^(data|blob):/.test(request.url())
            && !request.url().startsWith(`${base}/`))
        {
            complain(`request: ${request.url()}`);
        }
    });

    await page.addInitScript(() => {
        window.violations = [];
        document.addEventListener("securitypolicyviolation", (event) =>
            window.violations.push([event.violatedDirective, event.sample]));
    });
    await page.goto(`${base}${path}`);
    return page;
}


export const live = (page) =>
    page.locator("#connection[data-state=live]", { hasText: "Live" }).waitFor();

export const row = (page, id) =>
    page.locator("tbody tr", { has: page.locator(`a[href$="${id}"]`) });


// nothing was run, refused or complained of; then the page is closed
export async function fine(page, name) {
    is(await page.evaluate(() => ({ ran: "pwned" in window,
                                    violations: window.violations })),
       { ran: false, violations: [] },
       `${name}: nothing ran, nothing was refused`);
    await page.context().close();
}


export async function run(script) {
    const browser = await chromium.launch({
        executablePath: process.env.MCP_TASKS_CHROMIUM || "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-dev-shm-usage",
               "--disable-background-networking"],
    });

    try {
        await script(browser);
        is(complaints, [], "no complaints of the browser");
        console.log("done");

    } finally {
        await browser.close();
    }
}

// The list: live, filtered, bounded, and in touch again after a cut.

import { base, becomes, claim, create, fine, gone, held, is, live, ok, open,
         row, run, shown, text, until } from "./lib.mjs";

const rows = (page) => page.locator(".list-view tbody tr");


async function updates(browser) {
    const page = await open(browser, "/console/");
    await live(page);
    await page.evaluate(() => { window.marker = 1; });
    await shown(page.getByText("There are no tasks."), "an empty list");

    // by way of whichever process, each over its own connection
    const ids = [];
    for (let i = 0; i < 12; i++) {
        ids.push(await create("render", { i }, { owner: i % 3 ? "ann" : "" }));
    }

    for (const id of ids) {
        await shown(row(page, id), "a new task is there");
    }

    const task = await claim("render");
    const its = row(page, task.taskId);
    await shown(its.getByText("running"), "it runs");
    await shown(its.getByText("w-1"), "who has it");
    await shown(its.locator("progress:indeterminate"), "how far is unknown");

    await held("progress", task, { progress: 0.5, message: "half" });
    await shown(its.getByText("50%"), "how far it got");
    await shown(its.getByText("half"), "what it says");
    is(await its.locator("progress").evaluate((bar) => bar.value), 0.5,
       "and the bar");

    await held("complete", task, { result: text("done") });
    await shown(its.getByText("completed"), "it has ended");
    await becomes(() => page.waitForFunction((id) =>
        document.querySelector(".list-view tbody tr a").href.endsWith(id),
        task.taskId), "what changed last is first");
    await shown(page.locator("button.count.completed", { hasText: "1" }),
                "it is counted");
    is(await page.evaluate(() => window.marker), 1, "the page is the same");

    const count = await rows(page).count();
    is(count, 12, "each task once");
    ok(/^23h 5\dm$/.test(await its.locator(".c-expires").innerText()),
       "when it expires");
    await fine(page, "the list");
}


async function expires(browser) {
    const page = await open(browser, "/console/");
    await live(page);
    const id = await create("short", {});
    await shown(row(page, id), "a task that lives for a moment");
    await gone(row(page, id), "is gone when its time is over");
    await fine(page, "expiry");
}


// rows do not move below the pointer
async function holds(browser) {
    const page = await open(browser, "/console/#/tasks?tool=held");
    await live(page);
    const first = await create("held", {});
    await create("held", {});
    await becomes(() => page.waitForFunction(() =>
        document.querySelectorAll(".list-view tbody tr").length === 2),
        "two rows");

    await row(page, first).hover();
    const task = await claim("held");
    is(task.taskId, first, "the older one is claimed");
    await shown(row(page, first).getByText("running"), "it changes in place");
    await shown(page.getByText("order frozen"), "and it says so");
    is(await rows(page).nth(1).locator("a").getAttribute("href"),
       `#/task/${first}`, "where it was");

    await page.mouse.move(5, 5);
    await becomes(() => page.waitForFunction((id) =>
        document.querySelector(".list-view tbody tr a").href.endsWith(id),
        first), "it moves when the pointer is gone");

    await page.getByRole("button", { name: "Freeze order" }).click();
    await create("held", {});
    await shown(page.getByText("order frozen, 1 pending"), "held by a button");
    is(await rows(page).count(), 2, "no new row meanwhile");
    await page.getByRole("button", { name: "Freeze order" }).click();
    await becomes(() => page.waitForFunction(() =>
        document.querySelectorAll(".list-view tbody tr").length === 3),
        "and let go");
    await fine(page, "holding");
}


async function filters(browser) {
    const page = await open(browser, "/console/");
    await live(page);
    const running = await claim("render");
    const queued = await create("render", {}, { owner: "bob" });
    await shown(row(page, queued), "a task that is queued");

    await page.getByLabel("Status").selectOption("running");
    await gone(row(page, queued), "filtered by status");
    await shown(row(page, running.taskId), "one that runs is there");
    ok(page.url().endsWith("#/tasks?status=running"), "in the address");

    await page.reload();
    await live(page);
    await shown(row(page, running.taskId), "the same after a reload");
    is(await row(page, queued).count(), 0, "filtered as before");
    is(await page.getByLabel("Status").inputValue(), "running",
       "the form says so");

    await held("complete", running, { result: text("") });
    await gone(row(page, running.taskId), "a row leaves when it does not fit");

    await page.getByLabel("Tool").fill("render");
    await page.getByLabel("Tool").press("Enter");
    await page.waitForURL(/status=running&tool=render/);
    await page.goBack();
    await page.waitForURL(/\?status=running$/);
    is(await page.getByLabel("Tool").inputValue(), "", "back");
    await page.goForward();
    await page.waitForURL(/tool=render/);
    is(await page.getByLabel("Tool").inputValue(), "render", "forward");

    await page.getByRole("button", { name: "Clear" }).click();
    await shown(row(page, queued), "all again");
    await byOwnerAndAge(page, queued);
    await fine(page, "filters");
}


async function byOwnerAndAge(page, bobs) {
    const anns = await create("render", {}, { owner: "ann" });
    const nobodys = await create("render", {});
    await shown(row(page, nobodys), "tasks of several owners");

    await page.getByLabel("Owner", { exact: true }).fill("bob");
    await page.getByLabel("Owner", { exact: true }).press("Enter");
    await gone(row(page, anns), "filtered by owner");
    await shown(row(page, bobs), "that owner's are there");

    await page.getByLabel("no owner").check();
    await shown(row(page, nobodys), "those of nobody");
    await gone(row(page, bobs), "and no others");
    ok(page.url().endsWith("#/tasks?owner="), "no owner is in the address");
    await page.getByLabel("no owner").uncheck();

    await page.getByLabel("Younger than").fill("1h");
    await page.getByLabel("Younger than").press("Enter");
    await page.waitForURL(/maxAge=3600$/);
    await shown(row(page, anns), "younger than an hour");
    await page.getByLabel("Older than").fill("30m");
    await page.getByLabel("Older than").press("Enter");
    await shown(page.getByText("No task matches"), "but none is older");
    await page.getByLabel("Older than").fill("soon");
    await page.getByLabel("Older than").press("Enter");
    is(await page.getByLabel("Older than").getAttribute("aria-invalid"),
       "true", "what is no time is marked");
    await page.getByRole("button", { name: "Clear" }).click();
}


// A busy browser tells a page late that its address has changed.  What is
// written meanwhile stays, and adds to what was chosen before.
async function filtersSoon(browser) {
    const page = await open(browser, "/console/");
    await page.addInitScript(() => {
        const add = window.addEventListener.bind(window);
        window.told = 0;
        window.addEventListener = (type, listener) => add(type,
            type !== "hashchange" ? listener : (event) => setTimeout(() => {
                listener(event);
                window.told++;
            }, 1000));
    });
    await page.reload();
    await live(page);

    const older = page.getByLabel("Older than");
    await page.getByLabel("Younger than").fill("1h");
    await page.getByLabel("Younger than").press("Enter");
    await older.fill("30m");
    await page.waitForFunction(() => window.told === 1);
    is(await older.inputValue(), "30m", "what is written stays");
    await older.press("Enter");
    await page.getByLabel("Status").selectOption("queued");
    await page.waitForFunction(() => window.told === 3);
    ok(page.url().endsWith("?status=queued&minAge=1800&maxAge=3600"),
       "each filter adds to those before");
    await shown(page.getByText("No task matches"), "all of them count");
    await fine(page, "filters in a busy browser");
}


// of a list that is being read nobody knows whether it is empty
async function readsAgain(browser) {
    const page = await open(browser, "/console/");
    await live(page);

    let reads = 0;
    let release;
    const released = new Promise((resolve) => { release = resolve; });
    await page.route("**/api/tasks?**", async (route) => {
        reads++;
        await released;
        await route.continue();
    });

    await page.getByLabel("Status").selectOption("queued");
    ok(await until(() => reads === 1), "a list that is being read");
    await page.getByLabel("Status").selectOption("failed");
    ok(await until(() => reads === 2), "and another one instead");
    await page.evaluate(() => new Promise(requestAnimationFrame));
    is(await page.getByText("No task matches").isVisible(), false,
       "it is not said to be empty");
    is(await page.locator(".list-state").innerText(), "Loading…",
       "but that it is being read");
    release();
    await shown(page.getByText("No task matches"), "until it was read");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await fine(page, "reading again");
}


async function pages(browser) {
    for (let i = 0; i < 70; i++) {
        await create("bulk", { i });
    }

    const page = await open(browser, "/console/#/tasks?tool=bulk");
    const more = page.getByRole("button", { name: "Load more" });
    await more.waitFor();
    is(await rows(page).count(), 50, "a page of the list");
    await more.click();
    await more.waitFor({ state: "hidden" });
    is(await rows(page).count(), 70, "and all of it");
    await shown(page.getByText("70 tasks", { exact: true }), "counted");

    // back from a task, the list is as long as before
    await rows(page).nth(65).locator("a").click();
    await page.getByText("← All tasks").waitFor();
    await page.goBack();
    await becomes(() => page.waitForFunction(() =>
        document.querySelectorAll(".list-view tbody tr").length === 70),
        "back from a task");
    await becomes(() => page.waitForFunction(() => scrollY > 500),
                  "to where it was");
    await fine(page, "pages");
}


// somebody is back at the list before the task was read
async function goesBackSoon(browser) {
    const id = await create("bulk", {});
    const page = await open(browser, "/console/#/tasks?tool=bulk");
    await live(page);

    let asked = false;
    let release;
    const released = new Promise((resolve) => { release = resolve; });
    await page.route(`**/api/tasks/${id}`, async (route) => {
        asked = true;
        await released;
        await route.continue();
    });

    await row(page, id).locator("a").click();
    await page.getByText("← All tasks").waitFor();
    ok(await until(() => asked), "a task that is being read");
    await page.goBack();
    await live(page);

    // a pointer above the rows would hold them
    await page.mouse.move(5, 5);

    const answer = page.waitForResponse(`**/api/tasks/${id}`);
    release();
    await (await answer).finished();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await shown(row(page, await create("bulk", {})),
                "is read too late: the list is live");
    await fine(page, "back soon");
}


// the processes are replaced, and the page comes back by itself
async function reconnects(browser) {
    const page = await open(browser, "/console/");
    await live(page);
    await create("render", {});
    process.kill(Number(process.env.MCP_TASKS_MASTER), "SIGHUP");
    const id = await create("render", {});
    await shown(row(page, id), "new tasks after nginx was reloaded");
    await live(page);
    ok(true, "and it is live again");
    await fine(page, "reconnecting");
}


// a stream that missed too much says so; one that is refused is tried again
async function resets(browser) {
    const page = await open(browser, "/console/#/tasks?tool=none");
    await live(page);
    let lists = 0;
    let refused = 0;

    await page.route("**/api/tasks?**", (route) => {
        lists++;
        return route.continue();
    });
    await page.route("**/api/events**", (route) => {
        if (refused++ === 0) {
            return route.fulfill({ status: 204 });
        }
        return refused === 2
            ? route.fulfill({ contentType: "text/event-stream",
                              body: "id: 1\ndata: {\"taskId\":\"x\"}\n\n"
                                    + "event: reset\ndata: {}\n\n" })
            : route.continue();
    });

    await page.evaluate(() => { location.hash = "#/tasks?tool=other"; });
    await shown(page.getByText("Reconnecting"), "it says that it is not live");
    await becomes(() => live(page), "it comes back");
    await becomes(() => until(() => lists >= 2),
                  "and reads the list after a reset");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await fine(page, "resets");
}


await run(async (browser) => {
    const { headers } = await fetch(`${base}/console/`);
    ok(/default-src 'none'; script-src 'sha256-/.test(
        headers.get("content-security-policy")), "a policy");
    await updates(browser);
    await expires(browser);
    await holds(browser);
    await filters(browser);
    await filtersSoon(browser);
    await readsAgain(browser);
    await pages(browser);
    await goesBackSoon(browser);
    await resets(browser);
    await reconnects(browser);
});

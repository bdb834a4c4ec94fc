// By keyboard alone, on a phone, in the dark, with contrast.

import { becomes, claim, create, fine, held, is, live, ok, open, row, run,
         shown, text } from "./lib.mjs";

const focused = (page) => page.evaluate(() => {
    const element = document.activeElement;
    return element.getAttribute("aria-label") || element.id
           || element.textContent.trim().slice(0, 40);
});


// as a user does: until something has the focus
async function tabTo(page, name, most = 60) {
    for (let i = 0; i < most; i++) {
        await page.keyboard.press("Tab");

        if (await focused(page) === name) {
            return true;
        }
    }

    return false;
}


async function walk(browser) {
    const first = await create("keys", {});
    const second = await create("keys", {});
    const page = await open(browser, "/console/");
    const keys = page.keyboard;
    await live(page);

    await keys.press("Tab");
    await keys.press("Enter");
    is([await focused(page), new URL(page.url()).hash], ["view", ""],
       "the first Tab skips what is above, and goes nowhere");

    await keys.press("/");
    is(await focused(page), "f-tool", "/ goes to the filter");
    await keys.type("keys");
    await keys.press("Enter");
    await page.waitForURL(/tool=keys/);
    await becomes(() => page.waitForFunction(() =>
        document.querySelectorAll(".list-view tbody tr").length === 2),
        "filtered by keys");
    await keys.press("Escape");
    is(await page.evaluate(() => document.activeElement.tagName), "BODY",
       "Escape leaves it");

    await keys.press("j");
    await keys.press("j");
    ok(await row(page, first).evaluate((one) =>
        one.contains(document.activeElement)), "j goes down");
    await keys.press("k");
    ok(await row(page, second).evaluate((one) =>
        one.contains(document.activeElement)), "k goes up");
    ok(await page.evaluate(() =>
        getComputedStyle(document.activeElement).outlineStyle !== "none"),
       "the focus is seen");
    await keys.press("j");
    await keys.press("Enter");
    await page.waitForURL(new RegExp(`#/task/${first}`));
    await shown(page.locator("h1", { hasText: "keys" }), "Enter opens it");

    ok(await tabTo(page, "Cancel"), "Tab gets to the button");
    await keys.press("Enter");
    await shown(page.getByRole("dialog"), "Enter opens a dialog");
    is(await focused(page), "cancel-reason", "with the focus in it");
    await keys.type("by hand");
    await keys.press("Escape");
    is(await page.getByRole("dialog").count(), 0, "Escape closes it");
    is(await focused(page), "Cancel", "and the focus is back");
    await keys.press("Enter");
    await keys.type("by hand");
    await keys.press("Enter");
    await shown(page.locator(".task-title").getByText("cancelled"),
                "cancelled by keys");
    await page.getByRole("dialog").waitFor({ state: "detached" });

    await keys.press("Escape");
    await page.waitForURL(/#\/tasks\?tool=keys/);
    ok(true, "Escape goes back");
    await keys.press("2");
    await page.waitForURL(/#\/queues/);
    await shown(page.getByRole("row", { name: /^keys/ }), "2 are the queues");
    await keys.press("3");
    await page.waitForURL(/#\/zone/);
    await keys.press("1");
    await page.waitForURL(/#\/tasks\?tool=keys/);
    await help(page, keys);
    await fine(page, "keys");
}


async function help(page, keys) {
    await keys.press("?");
    const dialog = page.getByRole("dialog",
                                  { name: "Keyboard shortcuts" });
    await shown(dialog, "? shows the keys");
    await dialog.getByLabel("Enable keyboard shortcuts").uncheck();
    await keys.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await keys.press("2");
    await page.reload();
    await live(page);
    await keys.press("2");
    ok(/tasks/.test(page.url()), "they can be switched off");
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await dialog.getByLabel("Enable keyboard shortcuts").check();
    await keys.press("Escape");
}


// an answer without the mouse
async function answersByKeys(browser) {
    const id = await create("keys", {});
    const task = await claim("keys");

    if (task.taskId !== id) {
        await held("complete", task, { result: text("") });
    }

    const mine = task.taskId === id ? task : await claim("keys");
    const requestedSchema = { type: "object", required: ["sure"], properties: {
        sure: { type: "boolean", title: "Sure" },
        why: { type: "string", title: "Why", maxLength: 50 } } };
    await held("ask", mine, { inputRequests: { q: {
        method: "elicitation/create",
        params: { message: "Sure?", requestedSchema } } } });
    const page = await open(browser, `/console/#/task/${id}`);
    await page.getByLabel("Why").waitFor();
    ok(await tabTo(page, await page.getByLabel("yes", { exact: true })
        .getAttribute("id")), "Tab gets to the answer");
    await page.keyboard.press("Space");
    await page.keyboard.press("Tab");
    await page.keyboard.type("because");
    await page.keyboard.press("Enter");
    await shown(page.locator(".task-title").getByText("running"),
                "answered by keys");
    const got = await held("answers", mine, {});
    is(got.inputResponses.q, { action: "accept",
        content: { sure: true, why: "because" } }, "the answer");
    await fine(page, "answers by keys");
}


// --- sizes and colours

async function phone(browser, id) {
    for (const hash of ["#/tasks", `#/task/${id}`, "#/queues", "#/zone"]) {
        const page = await open(browser, `/console/${hash}`, {
            viewport: { width: 375, height: 740 }, hasTouch: true,
            isMobile: true });
        await page.locator("main > :is(section, article)").waitFor();
        await page.waitForTimeout(300);
        is(await page.evaluate(() => document.documentElement.scrollWidth
            - document.documentElement.clientWidth), 0,
           `${hash}: fits on a phone`);

        if (hash === "#/tasks") {
            await page.getByRole("button", { name: "Filters" }).click();
            await shown(page.getByLabel("Status"), "filters on a phone");
        }

        await fine(page, `${hash} on a phone`);
    }
}


// Of all texts that are seen the contrast with what is behind them.
function lowContrast() {
    const parse = (color) => {
        const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
        return { rgb: [r, g, b], a };
    };
    const light = (rgb) => rgb.map((value) => value / 255)
        .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const { rgb, a } = parse(getComputedStyle(at).backgroundColor);
            if (a === 1) {
                return rgb;
            }
        }
        return [255, 255, 255];
    };
    const walker = document.createTreeWalker(document.body,
                                             NodeFilter.SHOW_TEXT);
    const low = new Set();

    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;

        if (!walker.currentNode.data.trim() || !element.checkVisibility()
            || element.closest("button:disabled, .sr-only, noscript, option"))
        {
            continue;
        }

        const [a, b] = [light(parse(getComputedStyle(element).color).rgb),
                        light(behind(element))].sort((x, y) => y - x);

        if ((a + 0.05) / (b + 0.05) < 4.5) {
            low.add(`${element.className || element.tagName}: `
                    + `${walker.currentNode.data.trim().slice(0, 20)} `
                    + ((a + 0.05) / (b + 0.05)).toFixed(2));
        }
    }

    return [...low];
}


async function colours(browser, id) {
    const grounds = {};

    for (const colorScheme of ["light", "dark"]) {
        for (const hash of ["#/tasks", `#/task/${id}`, "#/queues", "#/zone"]) {
            const page = await open(browser, `/console/${hash}`, {
                colorScheme, reducedMotion: "reduce" });
            await page.locator("main > :is(section, article)").waitFor();
            await page.waitForTimeout(300);
            is(await page.evaluate(lowContrast), [],
               `${colorScheme} ${hash}: all can be read`);
            grounds[colorScheme] = await page.evaluate(() =>
                getComputedStyle(document.body).backgroundColor);
            is(await page.evaluate(() => document.getAnimations().length), 0,
               `${colorScheme} ${hash}: nothing moves`);
            await fine(page, `${colorScheme} ${hash}`);
        }
    }

    ok(grounds.light !== grounds.dark, "the dark is dark");
}


await run(async (browser) => {
    await walk(browser);
    await answersByKeys(browser);

    const id = await create("render", { n: 1 }, { owner: "ann" });
    const [task] = (await Promise.all([claim("render", "w-1")]));
    await held("progress", task, { progress: 1, total: 3, message: "one" });
    await phone(browser, id);
    await colours(browser, id);
});

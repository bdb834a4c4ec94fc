// Pictures of the console for the documentation, with tasks as they might be:
// written to MCP_TASKS_PICTURES.

import { claim, create, held, live, ok, open, pictures, run, send, shown, text }
    from "./lib.mjs";
import { stat } from "node:fs/promises";

// so that, in a picture, tasks are not all of the same age
const pause = () => new Promise((resolve) =>
    setTimeout(resolve, Number(process.env.MCP_TASKS_PACE || 0)));

const hours = (n) => n * 3600 * 1000;

const say = (task, progress, total, message) =>
    held("progress", task, { progress, total, message });


async function finished(tool, owner, worker, args, result) {
    await create(tool, args, { owner, ttlMs: hours(6) });
    await pause();
    const task = await claim(tool, worker);
    await pause();
    await held("complete", task, { result: text(result) });
}


const booking = {
    trip: { method: "elicitation/create", params: {
        mode: "form",
        message: "The night train is sold out. How shall I go on?",
        requestedSchema: { type: "object", required: ["how", "until"],
            properties: {
                how: { type: "string", title: "Travel by", oneOf: [
                    { const: "day", title: "the day train, 7 h 40" },
                    { const: "air", title: "plane, 1 h 55" }] },
                until: { type: "string", format: "date",
                         title: "Arrive at the latest on",
                         default: "2026-11-30" },
                budget: { type: "integer", title: "Budget in euro",
                          minimum: 50, maximum: 900, default: 240 },
                extras: { type: "array", title: "Worth paying for",
                          default: ["seat"], maxItems: 2, items: { anyOf: [
                              { const: "seat", title: "a seat by the window" },
                              { const: "bag", title: "a second bag" },
                              { const: "wifi", title: "wireless network" }] } },
                agree: { type: "boolean", title: "Book without asking again" },
            } } } },
};


async function demo() {
    await finished("summarize_report", "ann@example.org", "llm-1",
                   { report: "q3-2026.pdf", words: 200 }, "Sales grew by 12%");
    await finished("resize_images", "bob@example.org", "media-2",
                   { folder: "holiday", width: 1600 }, "48 images");
    await create("resize_images", { folder: "archive" },
                 { owner: "carol@example.org", ttlMs: hours(2) });
    await pause();
    const stopped = await claim("resize_images", "media-1");
    await pause();
    await send("POST", `/console/api/tasks/${stopped.taskId}/cancel`,
               "{\"reason\":\"uploaded twice\"}");

    await create("index_repository", { url: "https://git.example.org/shop" },
                 { owner: "ci" });
    const failing = await claim("index_repository", "index-1");
    await pause();
    await held("fail", failing, { error: {
        code: -32050, message: "the repository cannot be reached",
        data: { url: "https://git.example.org/shop" } } });
    await finished("summarize_report", "ann@example.org", "llm-2",
                   { report: "q2-2026.pdf", words: 200 }, "Costs fell by 3%");
    await finished("transcribe_audio", "dora@example.org", "gpu-1",
                   { file: "interview.flac", language: "en" },
                   "Good morning, and thank you for coming.");

    const booked = await create("book_travel", {
        from: "Vienna", to: "Hamburg", people: 2 }, {
        owner: "ann@example.org", metadata: { trip: "fair 2026" } });
    await pause();
    let task = await claim("book_travel", "agent-7");
    await say(task, 2, 5, "looking for trains");
    await pause();
    await held("ask", task, { inputRequests: booking,
                              message: "waiting for a decision" });

    await create("transcribe_audio", { file: "meeting.flac", language: "de" },
                 { owner: "dora@example.org", ttlMs: hours(1) });
    task = await claim("transcribe_audio", "gpu-1");
    await pause();
    await say(task, 0.62, undefined, "37 of 60 minutes");
    await create("render_video", { scenes: 12, quality: "high" },
                 { owner: "bob@example.org" });
    task = await claim("render_video", "gpu-2");
    await pause();
    await say(task, 4, 12, "scene 4: the harbour at night");
    await create("train_model", { epochs: 40 }, { owner: "carol@example.org" });
    task = await claim("train_model", "gpu-3");
    await say(task, undefined, undefined, "reading the data");

    for (const scenes of [3, 8]) {
        await create("render_video", { scenes }, { owner: "bob@example.org" });
        await pause();
    }

    return booked;
}


async function picture(browser, name, hash, options) {
    const page = await open(browser, `/console/${hash}`,
                            { timezoneId: "UTC", ...options });
    await page.locator(".list-view tbody tr, .question").first().waitFor();
    await live(page);
    await shown(page.locator("#connection", { hasText: "Live" }), name);

    // rows that have just come are still marked
    await page.evaluate(() => Promise.all(document.getAnimations()
        .filter((one) => one.effect.getTiming().iterations !== Infinity)
        .map((one) => one.finished)));
    const path = `${pictures}/${name}.png`;
    await page.screenshot({ path });
    const { size } = await stat(path);
    ok(size > 10000 && size < 250000, `${name}: ${size} bytes`);
    await page.context().close();
}


await run(async (browser) => {
    const id = await demo();

    await picture(browser, "console", "#/tasks",
                  { viewport: { width: 1280, height: 860 } });
    await picture(browser, "console-task", `#/task/${id}`,
                  { viewport: { width: 1280, height: 900 },
                    colorScheme: "dark" });
    await picture(browser, "console-phone", "#/tasks",
                  { viewport: { width: 375, height: 740 }, isMobile: true,
                    hasTouch: true });
});

// Drives the official JavaScript SDKs against the mock: `node check.mjs http://127.0.0.1:PORT`.
//
// Prints one line a check and ends with 1 when one failed.

import assert from "node:assert/strict";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";

const BASE = process.argv[2];
const PNG = Buffer.from("\x89PNG not really").toString("base64");
const PLAIN = "Grüße aus dem Mock, 你好 🚀.";
const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const checks = [];
const check = (name, run) => checks.push([name, run]);
const user = (content) => [{ role: "user", content }];

// --- OpenAI Chat Completions, and Gemini's endpoint that imitates it

const openai = new OpenAI({ baseURL: `${BASE}/v1`, apiKey: "k" });
const geminiChat = new OpenAI({ baseURL: `${BASE}/v1beta/openai`, apiKey: "k" });
const CHAT_TOOLS = [{ type: "function", function: { name: "weather", parameters: SCHEMA } }];

for (const [wire, client, model] of [
  ["openai-chat", openai, "mock-model"],
  ["gemini-openai", geminiChat, "gemini-3-pro"],
]) {
  check(`${wire} plain`, async () => {
    const got = await client.chat.completions.create({ model, messages: user("[plain]") });
    assert.equal(got.choices[0].message.content, PLAIN);
    assert.equal(got.usage.total_tokens, 19);
  });

  check(`${wire} streamed`, async () => {
    const stream = await client.chat.completions.create({
      model,
      messages: user("[plain]"),
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, PLAIN);
    assert.equal(usage.prompt_tokens, 12);
  });

  check(`${wire} tools`, async () => {
    const messages = user("[tools]");
    let got = await client.chat.completions.create({ model, messages, tools: CHAT_TOOLS });
    const message = got.choices[0].message;
    const cities = message.tool_calls.map((call) => JSON.parse(call.function.arguments).city);
    assert.deepEqual(cities, ["Paris", "Zürich"]);
    messages.push(message);
    for (const call of message.tool_calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: "21" });
    }
    got = await client.chat.completions.create({ model, messages, tools: CHAT_TOOLS });
    assert.match(got.choices[0].message.content, /^Paris and Zürich/);
  });

  check(`${wire} image`, async () => {
    const parts = [
      { type: "text", text: "[image]" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
    ];
    const got = await client.chat.completions.create({ model, messages: user(parts) });
    assert.equal(got.choices[0].message.content, "A red dot.");
  });
}

check("openai-chat streamed helper accumulates calls", async () => {
  const stream = openai.chat.completions.stream({
    model: "mock-model",
    messages: user("[tools]"),
    tools: CHAT_TOOLS,
  });
  const final = await stream.finalChatCompletion();
  const calls = final.choices[0].message.tool_calls;
  assert.deepEqual(calls.map((call) => JSON.parse(call.function.arguments).city), ["Paris", "Zürich"]);
});

check("openai-chat structured output", async () => {
  const got = await openai.chat.completions.parse({
    model: "mock-model",
    messages: user("[json]"),
    response_format: { type: "json_schema", json_schema: { name: "trip", schema: SCHEMA } },
  });
  assert.deepEqual(JSON.parse(got.choices[0].message.content), { city: "Paris", days: 3 });
});

check("openai-chat retries and errors", async () => {
  const ask = (text, more) =>
    openai.chat.completions.create({ model: "mock-model", messages: user(text), ...more });
  assert.equal((await ask("[retry]")).choices[0].message.content, "Third time lucky.");
  await assert.rejects(ask("[denied]"), OpenAI.PermissionDeniedError);
  await assert.rejects(async () => {
    for await (const chunk of await ask("[overload]", { stream: true })) assert.ok(chunk);
  }, /Overloaded right now/);
});

// --- OpenAI Responses

const RESPONSE_TOOLS = [{ type: "function", name: "weather", parameters: SCHEMA, strict: true }];

check("openai-responses plain", async () => {
  const got = await openai.responses.create({ model: "mock-model", input: "[plain]" });
  assert.equal(got.output_text, PLAIN);
  assert.equal(got.usage.output_tokens_details.reasoning_tokens, 2);
});

check("openai-responses streamed", async () => {
  const stream = openai.responses.stream({ model: "mock-model", input: "[plain]" });
  let text = "";
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(text, PLAIN);
  assert.equal((await stream.finalResponse()).output_text, PLAIN);
});

check("openai-responses tools, stateless with encrypted reasoning", async () => {
  const input = user("[tools]");
  const options = {
    model: "mock-model",
    tools: RESPONSE_TOOLS,
    store: false,
    include: ["reasoning.encrypted_content"],
  };
  let got = await openai.responses.create({ ...options, input });
  const calls = got.output.filter((item) => item.type === "function_call");
  assert.deepEqual(calls.map((call) => JSON.parse(call.arguments).city), ["Paris", "Zürich"]);
  input.push(...got.output);
  for (const { call_id } of calls) {
    input.push({ type: "function_call_output", call_id, output: "21" });
  }
  got = await openai.responses.create({ ...options, input });
  assert.match(got.output_text, /^Paris and Zürich/);
});

check("openai-responses image and summaries", async () => {
  const content = [
    { type: "input_text", text: "[image]" },
    { type: "input_image", image_url: `data:image/png;base64,${PNG}`, detail: "auto" },
  ];
  const ask = (input) => openai.responses.create({ model: "mock-model", input });
  assert.equal((await ask([{ role: "user", content }])).output_text, "A red dot.");
  const thinking = (await ask("[think]")).output.find((item) => item.type === "reasoning");
  assert.deepEqual(thinking.summary.map((part) => part.text), ["First thought.", "Second thought."]);
});

check("openai-responses retries", async () => {
  const got = await openai.responses.create({ model: "mock-model", input: "[retry]" });
  assert.equal(got.output_text, "Third time lucky.");
});

// --- Anthropic Messages

const anthropic = new Anthropic({ baseURL: BASE, apiKey: "k" });
const CLAUDE = { model: "claude-opus-4-8", max_tokens: 4096 };
const CLAUDE_TOOLS = [{ name: "weather", input_schema: SCHEMA }];

check("anthropic plain", async () => {
  const got = await anthropic.messages.create({ ...CLAUDE, messages: user("[plain]") });
  assert.equal(got.content[0].text, PLAIN);
  assert.equal(got.usage.cache_read_input_tokens, 4);
});

check("anthropic streamed", async () => {
  const stream = anthropic.messages.stream({ ...CLAUDE, messages: user("[plain]") });
  assert.equal(await stream.finalText(), PLAIN);
  assert.equal((await stream.finalMessage()).usage.output_tokens, 7);
});

check("anthropic tools with thinking", async () => {
  const messages = user("[tools]");
  const options = {
    ...CLAUDE,
    tools: CLAUDE_TOOLS,
    thinking: { type: "enabled", budget_tokens: 1024 },
  };
  const { content } = await anthropic.messages.stream({ ...options, messages }).finalMessage();
  const calls = content.filter((block) => block.type === "tool_use");
  assert.deepEqual(calls.map((call) => call.input.city), ["Paris", "Zürich"]);
  messages.push({ role: "assistant", content });
  const results = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "21" }));
  messages.push({ role: "user", content: results });
  const got = await anthropic.messages.create({ ...options, messages });
  assert.match(got.content[0].text, /^Paris and Zürich/);
});

check("anthropic image", async () => {
  const source = { type: "base64", media_type: "image/png", data: PNG };
  const parts = [{ type: "text", text: "[image]" }, { type: "image", source }];
  const got = await anthropic.messages.create({ ...CLAUDE, messages: user(parts) });
  assert.equal(got.content[0].text, "A red dot.");
});

check("anthropic retries, errors, tokens, models", async () => {
  const ask = (text) => anthropic.messages.create({ ...CLAUDE, messages: user(text) });
  assert.equal((await ask("[retry]")).content[0].text, "Third time lucky.");
  await assert.rejects(ask("[denied]"), Anthropic.PermissionDeniedError);
  await assert.rejects(
    anthropic.messages.stream({ ...CLAUDE, messages: user("[overload]") }).finalMessage(),
    /Overloaded right now/,
  );
  const count = await anthropic.messages.countTokens({
    model: CLAUDE.model,
    messages: user("12345678"),
  });
  assert.equal(count.input_tokens, 2);
  const ids = [];
  for await (const model of anthropic.models.list({ limit: 2 })) ids.push(model.id);
  assert.ok(ids.length > 2 && ids.includes("mock-model"));
});

// --- Gemini native

const google = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: BASE } });
const GEMINI = "gemini-3-pro";

check("gemini plain", async () => {
  const got = await google.models.generateContent({ model: GEMINI, contents: "[plain]" });
  assert.equal(got.text, PLAIN);
  assert.equal(got.usageMetadata.cachedContentTokenCount, 4);
});

check("gemini streamed", async () => {
  let text = "";
  const stream = await google.models.generateContentStream({ model: GEMINI, contents: "[plain]" });
  for await (const chunk of stream) text += chunk.text ?? "";
  assert.equal(text, PLAIN);
});

check("gemini tools with signatures", async () => {
  const config = {
    tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: SCHEMA }] }],
    thinkingConfig: { includeThoughts: true },
  };
  const contents = [{ role: "user", parts: [{ text: "[tools]" }] }];
  let got = await google.models.generateContent({ model: GEMINI, contents, config });
  assert.deepEqual(got.functionCalls.map((call) => call.args.city), ["Paris", "Zürich"]);
  contents.push(got.candidates[0].content);
  const parts = got.functionCalls.map(({ name }) => ({
    functionResponse: { name, response: { degrees: 21 } },
  }));
  contents.push({ role: "user", parts });
  got = await google.models.generateContent({ model: GEMINI, contents, config });
  assert.match(got.text, /^Paris and Zürich/);
});

check("gemini structured output and image", async () => {
  const config = { responseMimeType: "application/json", responseJsonSchema: SCHEMA };
  const json = await google.models.generateContent({ model: GEMINI, contents: "[json]", config });
  assert.deepEqual(JSON.parse(json.text), { city: "Paris", days: 3 });
  const parts = [{ text: "[image]" }, { inlineData: { mimeType: "image/png", data: PNG } }];
  const got = await google.models.generateContent({ model: GEMINI, contents: [{ role: "user", parts }] });
  assert.equal(got.text, "A red dot.");
});

check("gemini errors, tokens, models", async () => {
  await assert.rejects(
    google.models.generateContent({ model: GEMINI, contents: "[denied]" }),
    /Not for you/,
  );
  const count = await google.models.countTokens({ model: GEMINI, contents: "12345678" });
  assert.equal(count.totalTokens, 2);
  const names = [];
  for await (const model of await google.models.list({ config: { pageSize: 2 } })) {
    names.push(model.name);
  }
  assert.ok(names.length > 2 && names.includes("models/mock-model"));
});

// --- The AI SDK on every wire

const weather = tool({
  description: "The weather.",
  inputSchema: z.object({ city: z.string() }),
  execute: async () => ({ degrees: 21 }),
});
const providers = {
  "openai (Responses)": createOpenAI({ baseURL: `${BASE}/v1`, apiKey: "k" })("mock-model"),
  "openai (Chat)": createOpenAI({ baseURL: `${BASE}/v1`, apiKey: "k" }).chat("mock-model"),
  "openai-compatible": createOpenAICompatible({
    name: "mock",
    baseURL: `${BASE}/v1`,
    apiKey: "k",
  })("mock-model"),
  anthropic: createAnthropic({ baseURL: `${BASE}/v1`, apiKey: "k" })("claude-opus-4-8"),
  google: createGoogleGenerativeAI({ baseURL: `${BASE}/v1beta`, apiKey: "k" })(GEMINI),
};

for (const [name, model] of Object.entries(providers)) {
  check(`ai sdk, ${name}: plain`, async () => {
    const got = await generateText({ model, prompt: "[plain]" });
    assert.equal(got.text, PLAIN);
    assert.equal(got.usage.inputTokens, 12);
  });

  check(`ai sdk, ${name}: streamed tools in two steps`, async () => {
    const got = streamText({
      model,
      prompt: "[tools]",
      tools: { weather },
      stopWhen: stepCountIs(3),
      onError: ({ error }) => {
        throw error;
      },
    });
    assert.match(await got.text, /^Paris and Zürich/);
    const steps = await got.steps;
    assert.deepEqual(steps[0].toolCalls.map((call) => call.input.city), ["Paris", "Zürich"]);
  });

  check(`ai sdk, ${name}: structured output`, async () => {
    const schema = z.object({ city: z.string(), days: z.number() });
    const got = await generateObject({ model, prompt: "[json]", schema });
    assert.deepEqual(got.object, { city: "Paris", days: 3 });
  });

  check(`ai sdk, ${name}: image`, async () => {
    const content = [
      { type: "text", text: "[image]" },
      { type: "image", image: Buffer.from(PNG, "base64"), mediaType: "image/png" },
    ];
    const got = await generateText({ model, messages: [{ role: "user", content }] });
    assert.equal(got.text, "A red dot.");
  });
}

let failed = 0;
for (const [name, run] of checks) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}`);
    console.log(error);
  }
}
console.log(`${checks.length - failed} of ${checks.length} checks passed`);
process.exit(failed ? 1 : 0);

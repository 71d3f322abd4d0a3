// The official JavaScript SDKs as adapters under test:
// `node adapter.mjs openai|anthropic|google-genai|ai-sdk|ai-sdk-compatible`.
//
// Speaks the protocol of docs/src/adapter-protocol.md: a line of JSON for each case on standard input, a line of JSON
// for each report on standard output. It uses each SDK as its documentation shows it, streaming helpers included, and
// repairs nothing: what the SDK makes of an answer is what is reported.
//
// The packages and their versions are those of mock-providers/tests/sdks/package-lock.json.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGES = process.env.TURNWIRE_SDKS ?? join(HERE, "../../../mock-providers/tests/sdks");
const require = createRequire(join(PACKAGES, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const versionOf = (name) =>
  JSON.parse(readFileSync(join(PACKAGES, "node_modules", name, "package.json"), "utf8")).version;
const SDK = process.argv[2] ?? "openai";

// --- errors

const BY_STATUS = {
  400: "invalid-request",
  401: "auth",
  403: "auth",
  404: "not-found",
  408: "timeout",
  413: "invalid-request",
  422: "invalid-request",
  429: "rate-limit",
  503: "overloaded",
  529: "overloaded",
};

/** The error and its causes, the outermost first. */
function chain(error) {
  const found = [];
  for (let at = error; at && found.length < 8; at = at.cause ?? at.lastError ?? at.error) found.push(at);
  return found;
}

function classOf(error) {
  const names = chain(error).map((at) => `${at?.name ?? ""} ${at?.constructor?.name ?? ""} ${at?.code ?? ""}`);
  const has = (pattern) => names.some((name) => pattern.test(name));
  const status = statusOf(error);
  if (has(/Timeout|TIMEOUT|AbortError/)) return "timeout";
  if (has(/ContentFilter/)) return "content-filter";
  if (status >= 400) return BY_STATUS[status] ?? (status >= 500 ? "server" : "invalid-request");
  if (has(/SyntaxError|JSONParse|TypeValidation|InvalidResponse|EmptyResponse/)) return "protocol";
  if (has(/APIConnectionError|ECONN|EPIPE|UND_ERR|SocketError|HPE_/)) return "network";
  if (chain(error).some((at) => /terminated|fetch failed|Premature close/.test(at?.message ?? ""))) return "network";
  if (has(/NoOutputGenerated|stream ended|StreamEnded/)) return "stream-interrupted";
  if (chain(error).some((at) => /(ended|closed) (without|before)|missing finish_reason|incomplete/i.test(at?.message ?? ""))) {
    return "stream-interrupted";
  }
  if (has(/APIError|ApiError|APICallError|AnthropicError|OpenAIError|AI_/)) return "server";
  // A TypeError or the like from within the SDK is no way to say what was wrong with the answer.
  return error instanceof TypeError || error instanceof RangeError ? "crash" : "server";
}

function statusOf(error) {
  for (const at of chain(error)) {
    const status = at?.status ?? at?.statusCode;
    if (Number.isInteger(status) && status >= 100) return status;
  }
  return undefined;
}

const errorReport = (error) => ({
  class: classOf(error),
  status: statusOf(error),
  message: chain(error)
    .map((at) => `${at?.name ?? typeof at}: ${at?.message ?? JSON.stringify(at)}`)
    .join("; ")
    .slice(0, 2000),
});

// --- requests

const options = (case_) => case_.options ?? {};
const timeout = (case_) => options(case_).timeoutMs ?? 15_000;
const retries = (case_) => options(case_).retries ?? 2;
const parts = (content) =>
  content == null ? [] : typeof content === "string" ? [{ type: "text", text: content }] : content;
const argumentsText = (call) =>
  typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
const parsed = (call) => (typeof call.arguments === "string" ? JSON.parse(call.arguments) : call.arguments);

/** Media type and base64 of an image part; undefined for a URL. */
function image(part) {
  const data = /^data:([^;,]*)[^,]*,(.*)$/s.exec(part.image);
  if (data) return { mediaType: data[1], data: data[2] };
  return part.image.startsWith("http") ? undefined : { mediaType: part.mediaType ?? "image/png", data: part.image };
}

function imageUrl(part) {
  const data = image(part);
  return data ? `data:${data.mediaType};base64,${data.data}` : part.image;
}

// --- OpenAI

const CHAT_FINISH = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  function_call: "tool-calls",
  content_filter: "content-filter",
};

function chatMessage({ role, content, toolCalls, toolCallId }) {
  const sent = { role, content };
  if (Array.isArray(content)) {
    sent.content = content.map((part) =>
      part.type === "text" ? part : { type: "image_url", image_url: { url: imageUrl(part) } },
    );
  }
  if (toolCalls?.length) {
    sent.tool_calls = toolCalls.map((call) => ({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: argumentsText(call) },
    }));
  }
  if (role === "tool") sent.tool_call_id = toolCallId;
  return sent;
}

async function openaiSdk() {
  const { default: OpenAI } = await load("openai");
  const client = (case_) =>
    new OpenAI({
      baseURL: case_.baseUrl,
      apiKey: case_.apiKey,
      maxRetries: retries(case_),
      timeout: timeout(case_),
    });

  async function chat(case_) {
    const body = { model: case_.model, messages: case_.messages.map(chatMessage) };
    if (case_.tools?.length) body.tools = case_.tools.map((tool) => ({ type: "function", function: tool }));
    const deltas = [];
    let got;
    if (case_.stream) {
      const stream = client(case_).chat.completions.stream({ ...body, stream_options: { include_usage: true } });
      stream.on("content", (text) => deltas.push({ kind: "text", text }));
      got = await stream.finalChatCompletion();
    } else {
      got = await client(case_).chat.completions.create(body);
    }
    const { message, finish_reason } = got.choices[0];
    return {
      text: message.content ?? "",
      reasoning: message.reasoning_content ?? message.reasoning ?? "",
      refusal: message.refusal,
      toolCalls: (message.tool_calls ?? []).map((call) => ({
        id: call.id,
        name: call.function?.name,
        arguments: call.function?.arguments,
      })),
      finishReason: CHAT_FINISH[finish_reason] ?? finish_reason,
      usage: got.usage && {
        inputTokens: got.usage.prompt_tokens,
        outputTokens: got.usage.completion_tokens,
        cachedInputTokens: got.usage.prompt_tokens_details?.cached_tokens,
        reasoningTokens: got.usage.completion_tokens_details?.reasoning_tokens,
      },
      deltas,
    };
  }

  function responseItems({ messages }) {
    return messages.flatMap(({ role, content, toolCalls, toolCallId }) => {
      if (role === "tool") return [{ type: "function_call_output", call_id: toolCallId, output: content }];
      const found = parts(content).map((part) =>
        part.type === "image"
          ? { type: "input_image", image_url: imageUrl(part), detail: "auto" }
          : { type: role === "assistant" ? "output_text" : "input_text", text: part.text },
      );
      const calls = (toolCalls ?? []).map((call) => ({
        type: "function_call",
        call_id: call.id,
        name: call.name,
        arguments: argumentsText(call),
      }));
      return found.length ? [{ role, content: found }, ...calls] : calls;
    });
  }

  async function responses(case_) {
    const body = { model: case_.model, input: responseItems(case_), store: false };
    if (case_.tools?.length) {
      body.tools = case_.tools.map((tool) => ({ type: "function", strict: false, ...tool }));
    }
    const deltas = [];
    let got;
    if (case_.stream) {
      const stream = client(case_).responses.stream(body);
      stream.on("response.output_text.delta", ({ delta }) => deltas.push({ kind: "text", text: delta }));
      got = await stream.finalResponse();
    } else {
      got = await client(case_).responses.create(body);
    }
    const of = (type) => got.output.filter((item) => item.type === type);
    const toolCalls = of("function_call").map((item) => ({
      id: item.call_id,
      name: item.name,
      arguments: item.arguments,
    }));
    let finishReason = toolCalls.length ? "tool-calls" : "stop";
    if (got.status === "incomplete") {
      const reason = got.incomplete_details?.reason;
      finishReason = { max_output_tokens: "length", content_filter: "content-filter" }[reason] ?? reason;
    } else if (got.status !== "completed") {
      finishReason = got.status;
    }
    return {
      text: got.output_text ?? "",
      reasoning: of("reasoning")
        .flatMap((item) => [...(item.summary ?? []), ...(item.content ?? [])])
        .map((part) => part.text)
        .join("\n\n"),
      refusal: of("message")
        .flatMap((item) => item.content)
        .find((part) => part.type === "refusal")?.refusal,
      toolCalls,
      finishReason,
      usage: got.usage && {
        inputTokens: got.usage.input_tokens,
        outputTokens: got.usage.output_tokens,
        cachedInputTokens: got.usage.input_tokens_details?.cached_tokens,
        reasoningTokens: got.usage.output_tokens_details?.reasoning_tokens,
      },
      deltas,
    };
  }

  return { "openai-chat": chat, "gemini-openai": chat, "openai-responses": responses };
}

// --- Anthropic

const CLAUDE_FINISH = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool-calls",
  refusal: "refusal",
};

async function anthropicSdk() {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");

  function messages(case_) {
    return case_.messages
      .filter(({ role }) => role !== "system")
      .map(({ role, content, toolCalls, toolCallId }) => {
        if (role === "tool") {
          return { role: "user", content: [{ type: "tool_result", tool_use_id: toolCallId, content }] };
        }
        const found = parts(content).map((part) => {
          if (part.type === "text") return part;
          const data = image(part);
          const source = data
            ? { type: "base64", media_type: data.mediaType, data: data.data }
            : { type: "url", url: part.image };
          return { type: "image", source };
        });
        const calls = (toolCalls ?? []).map((call) => ({
          type: "tool_use",
          id: call.id,
          name: call.name,
          input: parsed(call),
        }));
        return { role, content: [...found, ...calls] };
      });
  }

  async function claude(case_) {
    const client = new Anthropic({
      baseURL: case_.baseUrl,
      apiKey: case_.apiKey,
      maxRetries: retries(case_),
      timeout: timeout(case_),
    });
    const body = {
      model: case_.model,
      max_tokens: options(case_).maxTokens ?? 1024,
      messages: messages(case_),
    };
    const system = case_.messages.filter(({ role }) => role === "system").map(({ content }) => content);
    if (system.length) body.system = system.join("\n\n");
    if (case_.tools?.length) {
      body.tools = case_.tools.map(({ name, description, parameters }) => ({
        name,
        description,
        input_schema: parameters,
      }));
    }
    const deltas = [];
    let got;
    if (case_.stream) {
      const stream = client.messages.stream(body);
      stream.on("text", (text) => deltas.push({ kind: "text", text }));
      got = await stream.finalMessage();
    } else {
      got = await client.messages.create(body);
    }
    const of = (type) => got.content.filter((block) => block.type === type);
    const cached = got.usage.cache_read_input_tokens ?? 0;
    const written = got.usage.cache_creation_input_tokens ?? 0;
    return {
      text: of("text")
        .map((block) => block.text)
        .join(""),
      reasoning: of("thinking")
        .map((block) => block.thinking)
        .join(""),
      toolCalls: of("tool_use").map(({ id, name, input }) => ({ id, name, arguments: input })),
      finishReason: CLAUDE_FINISH[got.stop_reason] ?? got.stop_reason,
      usage: {
        inputTokens: got.usage.input_tokens == null ? undefined : got.usage.input_tokens + cached + written,
        outputTokens: got.usage.output_tokens,
        cachedInputTokens: cached,
        reasoningTokens: got.usage.output_tokens_details?.thinking_tokens,
      },
      deltas,
    };
  }

  return { "anthropic-messages": claude };
}

// --- Gemini

const GEMINI_FILTERS = new Set(["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"]);

async function googleSdk() {
  const { GoogleGenAI } = await load("@google/genai");

  function contents({ messages }) {
    return messages
      .filter(({ role }) => role !== "system")
      .map(({ role, content, toolCalls, toolName }) => {
        if (role === "tool") {
          const functionResponse = { name: toolName ?? "tool", response: { result: content } };
          return { role: "user", parts: [{ functionResponse }] };
        }
        const found = parts(content).map((part) => {
          if (part.type === "text") return { text: part.text };
          const data = image(part);
          return { inlineData: { mimeType: data?.mediaType, data: data?.data } };
        });
        const calls = (toolCalls ?? []).map((call) => ({ functionCall: { name: call.name, args: parsed(call) } }));
        return { role: role === "assistant" ? "model" : "user", parts: [...found, ...calls] };
      });
  }

  async function gemini(case_) {
    const client = new GoogleGenAI({
      apiKey: case_.apiKey,
      httpOptions: {
        baseUrl: case_.baseUrl.replace(/\/v1beta$/, ""),
        timeout: timeout(case_),
        retryOptions: { attempts: retries(case_) + 1 },
      },
    });
    const config = {};
    const system = case_.messages.filter(({ role }) => role === "system").map(({ content }) => content);
    if (system.length) config.systemInstruction = system.join("\n\n");
    if (case_.tools?.length) {
      const functionDeclarations = case_.tools.map(({ name, description, parameters }) => ({
        name,
        description,
        parametersJsonSchema: parameters,
      }));
      config.tools = [{ functionDeclarations }];
    }
    const asked = { model: case_.model, contents: contents(case_), config };
    const chunks = case_.stream
      ? await client.models.generateContentStream(asked)
      : [await client.models.generateContent(asked)];
    const got = { text: "", reasoning: "", toolCalls: [], deltas: [] };
    let finish, usage;
    for await (const chunk of chunks) {
      usage = chunk.usageMetadata ?? usage;
      if (chunk.promptFeedback?.blockReason) finish = "content-filter";
      const candidate = chunk.candidates?.[0];
      finish = candidate?.finishReason ?? finish;
      for (const part of candidate?.content?.parts ?? []) {
        if (part.functionCall) {
          const { id, name, args } = part.functionCall;
          got.toolCalls.push({ id, name, arguments: args ?? {} });
        } else if (part.text && part.thought) {
          got.reasoning += part.text;
        } else if (part.text) {
          got.text += part.text;
          got.deltas.push({ kind: "text", text: part.text });
        }
      }
    }
    if (GEMINI_FILTERS.has(finish)) finish = "content-filter";
    if (finish === "STOP") finish = got.toolCalls.length ? "tool-calls" : "stop";
    if (finish === "MAX_TOKENS") finish = "length";
    return {
      ...got,
      finishReason: finish,
      usage: usage && {
        inputTokens: (usage.promptTokenCount ?? 0) + (usage.toolUsePromptTokenCount ?? 0),
        outputTokens: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
        cachedInputTokens: usage.cachedContentTokenCount,
        reasoningTokens: usage.thoughtsTokenCount,
      },
    };
  }

  return { gemini };
}

// --- the AI SDK on every wire

async function aiSdk(compatible) {
  const { generateText, streamText, jsonSchema, tool } = await load("ai");
  const given = (case_) => ({ baseURL: case_.baseUrl, apiKey: case_.apiKey });
  const models = {};
  if (compatible) {
    const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
    const model = (case_) =>
      createOpenAICompatible({ name: "mock", includeUsage: true, ...given(case_) })(case_.model);
    models["openai-chat"] = model;
    models["gemini-openai"] = model;
  } else {
    const { createOpenAI } = await load("@ai-sdk/openai");
    const { createAnthropic } = await load("@ai-sdk/anthropic");
    const { createGoogleGenerativeAI } = await load("@ai-sdk/google");
    models["openai-chat"] = (case_) => createOpenAI(given(case_)).chat(case_.model);
    models["openai-responses"] = (case_) => createOpenAI(given(case_)).responses(case_.model);
    models["anthropic-messages"] = (case_) =>
      createAnthropic({ ...given(case_), baseURL: `${case_.baseUrl}/v1` })(case_.model);
    models.gemini = (case_) => createGoogleGenerativeAI(given(case_))(case_.model);
  }

  function content(value) {
    return parts(value).map((part) =>
      part.type === "text"
        ? part
        : { type: "image", image: image(part)?.data ?? new URL(part.image), mediaType: image(part)?.mediaType },
    );
  }

  function messages(case_) {
    return case_.messages.map((message) => {
      if (message.role === "system") return { role: "system", content: message.content };
      if (message.role === "tool") {
        const output = { type: "text", value: message.content };
        const toolName = message.toolName ?? "tool";
        return { role: "tool", content: [{ type: "tool-result", toolCallId: message.toolCallId, toolName, output }] };
      }
      const calls = (message.toolCalls ?? []).map((call) => ({
        type: "tool-call",
        toolCallId: call.id,
        toolName: call.name,
        input: parsed(call),
      }));
      return { role: message.role, content: [...content(message.content), ...calls] };
    });
  }

  const usageOf = (usage) =>
    usage && {
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cachedInputTokens: usage.cachedInputTokens ?? usage.inputTokenDetails?.cacheReadTokens,
      reasoningTokens: usage.reasoningTokens ?? usage.outputTokenDetails?.reasoningTokens,
    };
  const callOf = ({ toolCallId, toolName, input }) => ({ id: toolCallId, name: toolName, arguments: input });

  async function ask(case_) {
    const asked = {
      model: models[case_.wire](case_),
      messages: messages(case_),
      maxRetries: retries(case_),
      timeout: { chunkMs: timeout(case_), stepMs: 60_000 },
    };
    if (case_.tools?.length) {
      asked.tools = Object.fromEntries(
        case_.tools.map(({ name, description, parameters }) => [
          name,
          tool({ description, inputSchema: jsonSchema(parameters) }),
        ]),
      );
    }
    if (!case_.stream) {
      const got = await generateText(asked);
      return {
        text: got.text,
        reasoning: got.reasoningText ?? "",
        toolCalls: got.toolCalls.map(callOf),
        finishReason: got.finishReason,
        usage: usageOf(got.usage),
      };
    }
    const outcome = { text: "", reasoning: "", toolCalls: [], deltas: [] };
    let failure;
    for await (const part of streamText({ ...asked, onError: () => {} }).fullStream) {
      if (part.type === "text-delta") {
        outcome.text += part.text;
        outcome.deltas.push({ kind: "text", text: part.text });
      } else if (part.type === "reasoning-delta") {
        outcome.reasoning += part.text;
      } else if (part.type === "tool-call") {
        outcome.toolCalls.push(callOf(part));
      } else if (part.type === "finish") {
        outcome.finishReason = part.finishReason;
        outcome.usage = usageOf(part.totalUsage);
      } else if (part.type === "error") {
        failure ??= part.error ?? new Error("an error part without an error");
      } else if (part.type === "abort") {
        failure ??= Object.assign(new Error("the stream was aborted"), { name: "TimeoutError" });
      }
    }
    if (failure) throw failure;
    return outcome;
  }

  return Object.fromEntries(Object.keys(models).map((wire) => [wire, ask]));
}

// --- the protocol

const SDKS = {
  openai: ["openai", openaiSdk],
  anthropic: ["@anthropic-ai/sdk", anthropicSdk],
  "google-genai": ["@google/genai", googleSdk],
  "ai-sdk": ["ai", () => aiSdk(false)],
  "ai-sdk-compatible": ["ai", () => aiSdk(true)],
};

function say(line) {
  let text = JSON.stringify(line);
  // A lone half of a surrogate pair is no text that could be handed on.
  if (/\\ud[89a-f]/i.test(text)) {
    const error = { class: "crash", message: "the text holds a lone surrogate" };
    text = JSON.stringify({ case: line.case, error });
  }
  process.stdout.write(`${text}\n`);
}
// Whatever a library logs must not stand among the lines of the protocol.
console.log = console.info = console.warn = console.debug = (...words) => console.error(...words);
process.on("unhandledRejection", (error) => console.error("unhandled:", error));

if (!(SDK in SDKS)) {
  console.error(`no SDK is named ${SDK}; there are ${Object.keys(SDKS).join(", ")}`);
  process.exit(2);
}
const [packageName, start] = SDKS[SDK];
const wires = await start();
say({ ready: true, name: `${SDK}-javascript`, version: versionOf(packageName), wires: Object.keys(wires).sort() });

for await (const line of createInterface({ input: process.stdin })) {
  const case_ = JSON.parse(line);
  const ask = wires[case_.wire];
  if (!ask) {
    say({ case: case_.case, unsupported: `${SDK} does not speak ${case_.wire}` });
    continue;
  }
  try {
    say({ case: case_.case, outcome: await ask(case_) });
  } catch (error) {
    say({ case: case_.case, error: errorReport(error) });
  }
}
process.exit(0);

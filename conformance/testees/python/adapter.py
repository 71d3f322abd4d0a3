"""The official Python SDKs as adapters under test: `adapter.py openai|anthropic|google-genai`.

Speaks the protocol of docs/src/adapter-protocol.md: a line of JSON for each case on standard input, a line of JSON
for each report on standard output. It uses each SDK as its documentation shows it, streaming helpers included, and
repairs nothing: what the SDK makes of an answer is what is reported.

The packages and their versions are those of mock-providers/tests/sdks/requirements.txt.
"""

import json
import os
import sys

for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
    os.environ.pop(name, None)

SDK = sys.argv[1] if len(sys.argv) > 1 else "openai"

# --- errors

BY_STATUS = {
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
}
UNREADABLE = {
    "JSONDecodeError",
    "UnicodeDecodeError",
    "APIResponseValidationError",
    "ValidationError",
    "UnknownApiResponseError",
    "DecodingError",
}
NETWORK = {"APIConnectionError", "NetworkError", "ConnectError", "ReadError", "RemoteProtocolError", "TransportError"}
TIMEOUT = {"APITimeoutError", "TimeoutException", "ReadTimeout", "ConnectTimeout", "TimeoutError"}


def class_of(error):
    names = {kind.__name__ for kind in type(error).__mro__}
    status = status_of(error)
    if names & TIMEOUT:
        return "timeout"
    if "ContentFilterFinishReasonError" in names:
        return "content-filter"
    if names & UNREADABLE:
        return "protocol"
    if isinstance(error, RuntimeError) and "Didn't receive" in str(error):
        return "stream-interrupted"
    if isinstance(status, int) and status >= 400:
        return BY_STATUS.get(status, "server" if status >= 500 else "invalid-request")
    if names & NETWORK:
        return "network"
    if "APIError" in names or "APIStatusError" in names:
        return "server"
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return "protocol"
    # A TypeError or the like from within the SDK is no way to say what was wrong with the answer.
    return "crash"


def status_of(error):
    status = getattr(error, "status_code", None)
    if status is None:
        status = getattr(error, "code", None)
    return status if isinstance(status, int) else None


def error_report(error):
    status = status_of(error)
    report = {"class": class_of(error), "message": f"{type(error).__name__}: {error}"[:2000]}
    if status:
        report["status"] = status
    return report


# --- requests


def options(case):
    return case.get("options") or {}


def seconds(case, otherwise=15.0):
    limit = options(case).get("timeoutMs")
    return limit / 1000 if limit else otherwise


def retries(case):
    return options(case).get("retries", 2)


def parts(content):
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def image(part):
    """Media type and base64 of an image part; None for a URL."""
    source = part["image"]
    if source.startswith("data:"):
        head, data = source[5:].split(",", 1)
        return head.split(";")[0], data
    if source.startswith("http"):
        return None
    return part.get("mediaType") or "image/png", source


def arguments(call):
    given = call.get("arguments")
    return given if isinstance(given, str) else json.dumps(given)


def parsed(call):
    given = call.get("arguments")
    return json.loads(given) if isinstance(given, str) else given


def chat_content(content):
    if content is None or isinstance(content, str):
        return content
    found = []
    for part in content:
        if part["type"] == "text":
            found.append(part)
        else:
            data = image(part)
            url = f"data:{data[0]};base64,{data[1]}" if data else part["image"]
            found.append({"type": "image_url", "image_url": {"url": url}})
    return found


def chat_message(message):
    sent = {"role": message["role"], "content": chat_content(message.get("content"))}
    if message.get("toolCalls"):
        sent["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": arguments(call)},
            }
            for call in message["toolCalls"]
        ]
    if message["role"] == "tool":
        sent["tool_call_id"] = message["toolCallId"]
    return sent


# --- OpenAI Chat Completions

CHAT_FINISH = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
}


def chat(case):
    client = openai.OpenAI(
        base_url=case["baseUrl"], api_key=case["apiKey"], max_retries=retries(case), timeout=seconds(case)
    )
    asked = {"model": case["model"], "messages": [chat_message(m) for m in case["messages"]]}
    if case.get("tools"):
        asked["tools"] = [{"type": "function", "function": tool} for tool in case["tools"]]
    if options(case).get("maxTokens"):
        asked["max_completion_tokens"] = options(case)["maxTokens"]
    deltas = []
    if case["stream"]:
        try:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                for event in stream:
                    if event.type == "content.delta":
                        deltas.append({"kind": "text", "text": event.delta})
                got = stream.get_final_completion()
        except openai.LengthFinishReasonError as error:
            got = error.completion
    else:
        got = client.chat.completions.create(**asked)
    return chat_outcome(got, deltas)


def chat_outcome(got, deltas):
    choice = got.choices[0]
    message = choice.message
    extra = message.model_extra or {}
    usage = got.usage
    return {
        "text": message.content or "",
        "reasoning": extra.get("reasoning_content") or extra.get("reasoning") or "",
        "refusal": message.refusal,
        "toolCalls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in message.tool_calls or []
        ],
        "finishReason": CHAT_FINISH.get(choice.finish_reason, choice.finish_reason),
        "usage": usage
        and {
            "inputTokens": usage.prompt_tokens,
            "outputTokens": usage.completion_tokens,
            "cachedInputTokens": usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens,
            "reasoningTokens": usage.completion_tokens_details and usage.completion_tokens_details.reasoning_tokens,
        },
        "deltas": deltas,
    }


# --- OpenAI Responses


def response_items(case):
    for message in case["messages"]:
        role = message["role"]
        if role == "tool":
            yield {"type": "function_call_output", "call_id": message["toolCallId"], "output": message["content"]}
            continue
        content = []
        for part in parts(message.get("content")):
            if part["type"] == "text":
                kind = "output_text" if role == "assistant" else "input_text"
                content.append({"type": kind, "text": part["text"]})
            else:
                data = image(part)
                url = f"data:{data[0]};base64,{data[1]}" if data else part["image"]
                content.append({"type": "input_image", "image_url": url})
        if content:
            yield {"role": role, "content": content}
        for call in message.get("toolCalls") or []:
            yield {
                "type": "function_call",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": arguments(call),
            }


def responses(case):
    client = openai.OpenAI(
        base_url=case["baseUrl"], api_key=case["apiKey"], max_retries=retries(case), timeout=seconds(case)
    )
    asked = {"model": case["model"], "input": list(response_items(case)), "store": False}
    if case.get("tools"):
        asked["tools"] = [{"type": "function", "strict": False, **tool} for tool in case["tools"]]
    deltas = []
    if case["stream"]:
        with client.responses.stream(**asked) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    deltas.append({"kind": "text", "text": event.delta})
            got = stream.get_final_response()
    else:
        got = client.responses.create(**asked)
    return response_outcome(got, deltas)


def response_outcome(got, deltas):
    calls, thinking, refusal = [], [], None
    for item in got.output:
        if item.type == "function_call":
            calls.append({"id": item.call_id, "name": item.name, "arguments": item.arguments})
        elif item.type == "reasoning":
            thinking += [part.text for part in item.summary or []]
            thinking += [part.text for part in getattr(item, "content", None) or []]
        elif item.type == "message":
            refusal = next((part.refusal for part in item.content if part.type == "refusal"), refusal)
    finish = "tool-calls" if calls else "stop"
    if got.status == "incomplete":
        reason = got.incomplete_details and got.incomplete_details.reason
        finish = {"max_output_tokens": "length", "content_filter": "content-filter"}.get(reason, reason)
    elif got.status != "completed":
        finish = got.status
    usage = got.usage
    return {
        "text": got.output_text,
        "reasoning": "\n\n".join(thinking),
        "refusal": refusal,
        "toolCalls": calls,
        "finishReason": finish,
        "usage": usage
        and {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "cachedInputTokens": usage.input_tokens_details and usage.input_tokens_details.cached_tokens,
            "reasoningTokens": usage.output_tokens_details and usage.output_tokens_details.reasoning_tokens,
        },
        "deltas": deltas,
    }


# --- Anthropic Messages

CLAUDE_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "refusal",
}


def claude_messages(case):
    for message in case["messages"]:
        role = message["role"]
        if role == "system":
            continue
        if role == "tool":
            result = {"type": "tool_result", "tool_use_id": message["toolCallId"], "content": message["content"]}
            yield {"role": "user", "content": [result]}
            continue
        content = []
        for part in parts(message.get("content")):
            data = image(part) if part["type"] == "image" else None
            if part["type"] == "text":
                content.append(part)
            elif data:
                source = {"type": "base64", "media_type": data[0], "data": data[1]}
                content.append({"type": "image", "source": source})
            else:
                content.append({"type": "image", "source": {"type": "url", "url": part["image"]}})
        for call in message.get("toolCalls") or []:
            content.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": parsed(call)})
        yield {"role": role, "content": content}


def claude(case):
    client = anthropic.Anthropic(
        base_url=case["baseUrl"], api_key=case["apiKey"], max_retries=retries(case), timeout=seconds(case)
    )
    asked = {
        "model": case["model"],
        "max_tokens": options(case).get("maxTokens", 1024),
        "messages": list(claude_messages(case)),
    }
    system = [message["content"] for message in case["messages"] if message["role"] == "system"]
    if system:
        asked["system"] = "\n\n".join(system)
    if case.get("tools"):
        asked["tools"] = [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
            for tool in case["tools"]
        ]
    deltas = []
    if case["stream"]:
        with client.messages.stream(**asked) as stream:
            for text in stream.text_stream:
                deltas.append({"kind": "text", "text": text})
            got = stream.get_final_message()
    else:
        got = client.messages.create(**asked)
    of_kind = lambda kind: [block for block in got.content if block.type == kind]
    usage = got.usage
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    return {
        "text": "".join(block.text or "" for block in of_kind("text")),
        "reasoning": "".join(block.thinking for block in of_kind("thinking")),
        "toolCalls": [
            {"id": block.id, "name": block.name, "arguments": block.input} for block in of_kind("tool_use")
        ],
        "finishReason": CLAUDE_FINISH.get(got.stop_reason, got.stop_reason),
        "usage": {
            "inputTokens": usage.input_tokens + cached + written if usage.input_tokens is not None else None,
            "outputTokens": usage.output_tokens,
            "cachedInputTokens": cached,
            "reasoningTokens": thinking_tokens(usage),
        },
        "deltas": deltas,
    }


def thinking_tokens(usage):
    details = getattr(usage, "output_tokens_details", None)
    if isinstance(details, dict):
        return details.get("thinking_tokens")
    return getattr(details, "thinking_tokens", None)


# --- Gemini

GEMINI_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
GEMINI_FILTERS = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"}


def gemini_contents(case):
    for message in case["messages"]:
        role = message["role"]
        if role == "system":
            continue
        found = []
        if role == "tool":
            result = {"name": message.get("toolName", "tool"), "response": {"result": message["content"]}}
            found.append({"function_response": result})
        else:
            for part in parts(message.get("content")):
                data = image(part) if part["type"] == "image" else None
                if part["type"] == "text":
                    found.append({"text": part["text"]})
                elif data:
                    found.append({"inline_data": {"mime_type": data[0], "data": data[1]}})
        for call in message.get("toolCalls") or []:
            found.append({"function_call": {"name": call["name"], "args": parsed(call)}})
        yield {"role": "model" if role == "assistant" else "user", "parts": found}


def gemini(case):
    tries = retries(case)
    client = genai.Client(
        api_key=case["apiKey"],
        http_options=types.HttpOptions(
            base_url=case["baseUrl"].removesuffix("/v1beta"),
            timeout=int(seconds(case) * 1000),
            retry_options=types.HttpRetryOptions(attempts=tries + 1, initial_delay=0.5),
        ),
    )
    config = {"automatic_function_calling": {"disable": True}}
    system = [message["content"] for message in case["messages"] if message["role"] == "system"]
    if system:
        config["system_instruction"] = "\n\n".join(system)
    if case.get("tools"):
        functions = [
            {
                "name": tool["name"],
                "description": tool["description"],
                "parameters_json_schema": tool["parameters"],
            }
            for tool in case["tools"]
        ]
        config["tools"] = [{"function_declarations": functions}]
    asked = {"model": case["model"], "contents": list(gemini_contents(case)), "config": config}
    if case["stream"]:
        chunks = client.models.generate_content_stream(**asked)
    else:
        chunks = [client.models.generate_content(**asked)]
    return gemini_outcome(chunks)


def gemini_outcome(chunks):
    text, thinking, calls, finish, usage, deltas = "", "", [], None, None, []
    for chunk in chunks:
        usage = chunk.usage_metadata or usage
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            finish = "content-filter"
        for candidate in (chunk.candidates or [])[:1]:
            if candidate.finish_reason:
                finish = getattr(candidate.finish_reason, "value", candidate.finish_reason)
            for part in (candidate.content and candidate.content.parts) or []:
                if part.function_call:
                    call = part.function_call
                    calls.append({"id": call.id, "name": call.name, "arguments": call.args or {}})
                elif part.text and part.thought:
                    thinking += part.text
                elif part.text:
                    text += part.text
                    deltas.append({"kind": "text", "text": part.text})
    if finish in GEMINI_FILTERS:
        finish = "content-filter"
    if finish == "STOP" and calls:
        finish = "tool-calls"
    counted = lambda number: number or 0
    return {
        "text": text,
        "reasoning": thinking,
        "toolCalls": calls,
        "finishReason": GEMINI_FINISH.get(finish, finish),
        "usage": usage
        and {
            "inputTokens": counted(usage.prompt_token_count) + counted(usage.tool_use_prompt_token_count),
            "outputTokens": counted(usage.candidates_token_count) + counted(usage.thoughts_token_count),
            "cachedInputTokens": usage.cached_content_token_count,
            "reasoningTokens": usage.thoughts_token_count,
        },
        "deltas": deltas,
    }


# --- the protocol

if SDK == "openai":
    import openai

    VERSION = openai.__version__
    WIRES = {"openai-chat": chat, "gemini-openai": chat, "openai-responses": responses}
elif SDK == "anthropic":
    import anthropic

    VERSION = anthropic.__version__
    WIRES = {"anthropic-messages": claude}
elif SDK == "google-genai":
    from google import genai
    from google.genai import types

    VERSION = genai.__version__
    WIRES = {"gemini": gemini}
else:
    sys.exit(f"no SDK is named {SDK!r}; there are openai, anthropic and google-genai")


def play(case):
    ask = WIRES.get(case["wire"])
    if ask is None:
        return {"unsupported": f"{SDK} does not speak {case['wire']}"}
    try:
        return {"outcome": ask(case)}
    except Exception as error:
        return {"error": error_report(error)}


def say(line):
    try:
        text = json.dumps(line, default=str, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        # A lone half of a surrogate pair is no text that could be handed on.
        text = json.dumps({"case": line["case"], "error": {"class": "crash", "message": str(error)}}).encode()
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def main():
    say({"ready": True, "name": f"{SDK}-python", "version": VERSION, "wires": sorted(WIRES)})
    for line in sys.stdin:
        case = json.loads(line)
        say({"case": case["case"], **play(case)})


main()

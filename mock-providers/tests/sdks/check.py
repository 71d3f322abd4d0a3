"""Drives the official Python SDKs against the mock: `check.py http://127.0.0.1:PORT`.

Prints one line a check and ends with 1 when one failed.
"""

import base64
import json
import os
import sys
import traceback

os.environ.pop("GOOGLE_API_KEY", None)
os.environ.pop("GEMINI_API_KEY", None)

import anthropic
import openai
from google import genai
from google.genai import errors as google_errors
from google.genai import types
from pydantic import BaseModel

BASE = sys.argv[1]
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nnot really").decode()
PLAIN = "Grüße aus dem Mock, 你好 🚀."
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}

checks = []


def check(function):
    checks.append(function)
    return function


class Trip(BaseModel):
    city: str
    days: int


def user(text):
    return [{"role": "user", "content": text}]


def error_of(call, kind):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}")


# --- OpenAI Chat Completions, and Gemini's endpoint that imitates it

chat = openai.OpenAI(base_url=f"{BASE}/v1", api_key="k")
gemini_chat = openai.OpenAI(base_url=f"{BASE}/v1beta/openai", api_key="k")
CHAT_TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
]


def chat_plain(client, model):
    got = client.chat.completions.create(model=model, messages=user("[plain]"))
    assert got.choices[0].message.content == PLAIN
    assert got.choices[0].finish_reason == "stop"
    assert got.usage.total_tokens == 19


def chat_streamed(client, model):
    text, usage, finish = "", None, None
    for chunk in client.chat.completions.create(
        model=model,
        messages=user("[plain]"),
        stream=True,
        stream_options={"include_usage": True},
    ):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
        usage = chunk.usage or usage
    assert (text, finish) == (PLAIN, "stop"), (text, finish)
    assert usage.prompt_tokens == 12


def chat_tools(client, model):
    messages = user("[tools]")
    got = client.chat.completions.create(
        model=model, messages=messages, tools=CHAT_TOOLS
    )
    message = got.choices[0].message
    cities = [json.loads(call.function.arguments)["city"] for call in message.tool_calls]
    assert cities == ["Paris", "Zürich"], cities
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "21"})
    got = client.chat.completions.create(
        model=model, messages=messages, tools=CHAT_TOOLS
    )
    assert got.choices[0].message.content.startswith("Paris and Zürich")


def chat_image(client, model):
    parts = [
        {"type": "text", "text": "[image]"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ]
    got = client.chat.completions.create(model=model, messages=user(parts))
    assert got.choices[0].message.content == "A red dot."


@check
def openai_chat_plain():
    chat_plain(chat, "mock-model")


@check
def openai_chat_streamed():
    chat_streamed(chat, "mock-model")


@check
def openai_chat_streamed_helper_accumulates_calls():
    with chat.chat.completions.stream(
        model="mock-model", messages=user("[tools]"), tools=CHAT_TOOLS
    ) as stream:
        final = stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert [json.loads(call.function.arguments)["city"] for call in calls] == [
        "Paris",
        "Zürich",
    ]


@check
def openai_chat_tools():
    chat_tools(chat, "mock-model")


@check
def openai_chat_structured_output():
    got = chat.chat.completions.parse(
        model="mock-model", messages=user("[json]"), response_format=Trip
    )
    assert got.choices[0].message.parsed == Trip(city="Paris", days=3)


@check
def openai_chat_image():
    chat_image(chat, "mock-model")


@check
def openai_chat_reasoning_tokens():
    got = chat.chat.completions.create(
        model="mock-model", messages=user("[think]"), reasoning_effort="low"
    )
    assert got.usage.completion_tokens_details.reasoning_tokens == 25


@check
def openai_chat_retries():
    got = chat.chat.completions.create(model="mock-model", messages=user("[retry]"))
    assert got.choices[0].message.content == "Third time lucky."


@check
def openai_chat_errors():
    error = error_of(
        lambda: chat.chat.completions.create(
            model="mock-model", messages=user("[denied]")
        ),
        openai.PermissionDeniedError,
    )
    assert "Not for you." in str(error) and error.request_id.startswith("req_")
    error_of(
        lambda: list(
            chat.chat.completions.create(
                model="mock-model", messages=user("[overload]"), stream=True
            )
        ),
        openai.APIError,
    )


@check
def openai_chat_length():
    got = chat.chat.completions.create(model="mock-model", messages=user("[length]"))
    assert got.choices[0].finish_reason == "length"


@check
def openai_models():
    assert "mock-model" in [model.id for model in chat.models.list()]
    assert chat.models.retrieve("mock-model").id == "mock-model"


@check
def gemini_openai_plain():
    chat_plain(gemini_chat, "gemini-3-pro")


@check
def gemini_openai_streamed():
    chat_streamed(gemini_chat, "gemini-3-pro")


@check
def gemini_openai_tools_with_signatures():
    chat_tools(gemini_chat, "gemini-3-pro")


@check
def gemini_openai_image():
    chat_image(gemini_chat, "gemini-3-pro")


@check
def gemini_openai_errors():
    error = error_of(
        lambda: gemini_chat.chat.completions.create(
            model="gemini-3-pro", messages=user("[denied]")
        ),
        openai.PermissionDeniedError,
    )
    # The error stands in a list, which this SDK hands on as it is.
    assert error.body[0]["error"]["message"] == "Not for you."


# --- OpenAI Responses

RESPONSE_TOOLS = [
    {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}
]


@check
def openai_responses_plain():
    got = chat.responses.create(model="mock-model", input="[plain]")
    assert got.output_text == PLAIN and got.status == "completed"
    assert got.usage.input_tokens_details.cached_tokens == 4


@check
def openai_responses_streamed():
    with chat.responses.stream(model="mock-model", input="[plain]") as stream:
        text = "".join(
            event.delta
            for event in stream
            if event.type == "response.output_text.delta"
        )
        final = stream.get_final_response()
    assert text == PLAIN and final.output_text == PLAIN


@check
def openai_responses_tools_stateless_with_encrypted_reasoning():
    items = [{"role": "user", "content": "[tools]"}]
    options = dict(
        model="mock-model",
        tools=RESPONSE_TOOLS,
        store=False,
        include=["reasoning.encrypted_content"],
    )
    got = chat.responses.create(input=items, **options)
    calls = [item for item in got.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["city"] for call in calls] == ["Paris", "Zürich"]
    items += [item.model_dump(exclude_none=True) for item in got.output]
    for call in calls:
        items.append(
            {"type": "function_call_output", "call_id": call.call_id, "output": "21"}
        )
    got = chat.responses.create(input=items, **options)
    assert got.output_text.startswith("Paris and Zürich")


@check
def openai_responses_tools_stored():
    got = chat.responses.create(
        model="mock-model", input="[tools]", tools=RESPONSE_TOOLS
    )
    outputs = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "21"}
        for item in got.output
        if item.type == "function_call"
    ]
    got = chat.responses.create(
        model="mock-model",
        input=outputs,
        tools=RESPONSE_TOOLS,
        previous_response_id=got.id,
    )
    assert got.output_text.startswith("Paris and Zürich")
    assert chat.responses.retrieve(got.id).id == got.id


@check
def openai_responses_structured_output():
    got = chat.responses.parse(model="mock-model", input="[json]", text_format=Trip)
    assert got.output_parsed == Trip(city="Paris", days=3)


@check
def openai_responses_image():
    parts = [
        {"type": "input_text", "text": "[image]"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    ]
    got = chat.responses.create(
        model="mock-model", input=[{"role": "user", "content": parts}]
    )
    assert got.output_text == "A red dot."


@check
def openai_responses_reasoning_summaries():
    got = chat.responses.create(
        model="mock-model", input="[think]", reasoning={"summary": "auto"}
    )
    thinking = next(item for item in got.output if item.type == "reasoning")
    assert [part.text for part in thinking.summary] == [
        "First thought.",
        "Second thought.",
    ]


@check
def openai_responses_retries_and_errors():
    got = chat.responses.create(model="mock-model", input="[retry]")
    assert got.output_text == "Third time lucky."
    events = chat.responses.create(model="mock-model", input="[overload]", stream=True)
    # This SDK raises nothing here: the failure is two events like any other.
    assert [event.type for event in events][-2:] == ["error", "response.failed"]
    got = chat.responses.create(model="mock-model", input="[length]")
    assert got.incomplete_details.reason == "max_output_tokens"


# --- Anthropic Messages

claude = anthropic.Anthropic(base_url=BASE, api_key="k")
CLAUDE = dict(model="claude-opus-4-8", max_tokens=4096)
CLAUDE_TOOLS = [{"name": "weather", "input_schema": SCHEMA}]


@check
def anthropic_plain():
    got = claude.messages.create(messages=user("[plain]"), **CLAUDE)
    assert got.content[0].text == PLAIN and got.stop_reason == "end_turn"
    assert (got.usage.input_tokens, got.usage.cache_read_input_tokens) == (8, 4)


@check
def anthropic_streamed():
    with claude.messages.stream(messages=user("[plain]"), **CLAUDE) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == PLAIN and final.usage.output_tokens == 7


@check
def anthropic_tools_with_thinking():
    messages = user("[tools]")
    options = dict(
        tools=CLAUDE_TOOLS,
        thinking={"type": "enabled", "budget_tokens": 1024},
        **CLAUDE,
    )
    with claude.messages.stream(messages=messages, **options) as stream:
        final = stream.get_final_message()
    kinds = [block.type for block in final.content]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"], kinds
    calls = [block for block in final.content if block.type == "tool_use"]
    assert [call.input["city"] for call in calls] == ["Paris", "Zürich"]
    messages.append(
        {
            "role": "assistant",
            "content": [block.model_dump(exclude_none=True) for block in final.content],
        }
    )
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": "21"}
        for call in calls
    ]
    messages.append({"role": "user", "content": results})
    got = claude.messages.create(messages=messages, **options)
    assert got.content[0].text.startswith("Paris and Zürich")


@check
def anthropic_structured_output():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    got = claude.messages.create(
        messages=user("[json]"),
        output_config={"format": {"type": "json_schema", "schema": schema}},
        **CLAUDE,
    )
    assert json.loads(got.content[0].text) == {"city": "Paris", "days": 3}


@check
def anthropic_image():
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    parts = [
        {"type": "text", "text": "[image]"},
        {"type": "image", "source": source},
    ]
    got = claude.messages.create(messages=user(parts), **CLAUDE)
    assert got.content[0].text == "A red dot."


@check
def anthropic_retries_and_errors():
    got = claude.messages.create(messages=user("[retry]"), **CLAUDE)
    assert got.content[0].text == "Third time lucky."
    error = error_of(
        lambda: claude.messages.create(messages=user("[denied]"), **CLAUDE),
        anthropic.PermissionDeniedError,
    )
    assert error.request_id.startswith("req_")

    def overloaded():
        with claude.messages.stream(messages=user("[overload]"), **CLAUDE) as stream:
            stream.get_final_message()

    error_of(overloaded, anthropic.APIStatusError)


@check
def anthropic_tokens_and_models():
    got = claude.messages.count_tokens(model="claude-opus-4-8", messages=user("12345678"))
    assert got.input_tokens == 2
    assert "mock-model" in [model.id for model in claude.models.list()]


# --- Gemini native

google = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=BASE))
PATIENT = types.HttpOptions(
    base_url=BASE,
    retry_options=types.HttpRetryOptions(attempts=4, initial_delay=0.01, max_delay=0.02),
)
GEMINI = "gemini-3-pro"


@check
def gemini_plain():
    got = google.models.generate_content(model=GEMINI, contents="[plain]")
    assert got.text == PLAIN
    assert got.usage_metadata.thoughts_token_count == 2
    assert got.candidates[0].finish_reason == types.FinishReason.STOP


@check
def gemini_streamed():
    chunks = google.models.generate_content_stream(model=GEMINI, contents="[plain]")
    assert "".join(chunk.text or "" for chunk in chunks) == PLAIN


@check
def gemini_tools_with_signatures():
    function = types.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[function])],
        thinking_config=types.ThinkingConfig(include_thoughts=True),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents = [types.Content(role="user", parts=[types.Part(text="[tools]")])]
    got = google.models.generate_content(model=GEMINI, contents=contents, config=config)
    assert [call.args["city"] for call in got.function_calls] == ["Paris", "Zürich"]
    contents.append(got.candidates[0].content)
    parts = [
        types.Part.from_function_response(name=call.name, response={"degrees": 21})
        for call in got.function_calls
    ]
    contents.append(types.Content(role="user", parts=parts))
    got = google.models.generate_content(model=GEMINI, contents=contents, config=config)
    assert got.text.startswith("Paris and Zürich")


@check
def gemini_structured_output():
    config = types.GenerateContentConfig(
        response_mime_type="application/json", response_schema=Trip
    )
    got = google.models.generate_content(model=GEMINI, contents="[json]", config=config)
    assert got.parsed == Trip(city="Paris", days=3)


@check
def gemini_image():
    image = types.Part.from_bytes(data=base64.b64decode(PNG), mime_type="image/png")
    got = google.models.generate_content(model=GEMINI, contents=["[image]", image])
    assert got.text == "A red dot."


@check
def gemini_thoughts():
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True)
    )
    chunks = list(
        google.models.generate_content_stream(
            model=GEMINI, contents="[think]", config=config
        )
    )
    parts = [
        part
        for chunk in chunks
        for part in chunk.candidates[0].content.parts or []
    ]
    thoughts = "".join(part.text for part in parts if part.thought)
    answer = "".join(part.text or "" for part in parts if not part.thought)
    assert thoughts == "First thought.Second thought." and answer == "42"


@check
def gemini_retries_and_errors():
    patient = genai.Client(api_key="k", http_options=PATIENT)
    got = patient.models.generate_content(model=GEMINI, contents="[retry]")
    assert got.text == "Third time lucky."
    error = error_of(
        lambda: google.models.generate_content(model=GEMINI, contents="[denied]"),
        google_errors.ClientError,
    )
    assert error.code == 403 and error.status == "PERMISSION_DENIED"


@check
def gemini_tokens_and_models():
    got = google.models.count_tokens(model=GEMINI, contents="12345678")
    assert got.total_tokens == 2
    assert "models/mock-model" in [model.name for model in google.models.list()]


def main():
    failed = 0
    for function in checks:
        try:
            function()
            print(f"ok {function.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED {function.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(checks) - failed} of {len(checks)} checks passed")
    sys.exit(1 if failed else 0)


main()

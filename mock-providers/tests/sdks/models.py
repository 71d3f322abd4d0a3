"""Prints the typed models of the official SDKs as JSON Schemas, by the name of our schema.

The drift test compares our schemas with them. Only what a service sends is asked for.
"""

import json
import sys

import anthropic.types as anthropic
import openai.types as openai
import openai.types.chat as chat
import openai.types.responses as responses
from anthropic.types.shared import error_response
from google.genai import types as gemini
from openai.types.responses import input_token_count_response
from openai.types.shared import ErrorObject as OpenaiError
from pydantic import TypeAdapter

MODELS = {
    "openai-chat.completion": chat.ChatCompletion,
    "openai-chat.chunk": chat.ChatCompletionChunk,
    "openai-chat.error#/properties/error": OpenaiError,
    "openai-chat.model": openai.Model,
    "openai-responses.response": responses.Response,
    "openai-responses.event": responses.ResponseStreamEvent,
    "openai-responses.count": input_token_count_response.InputTokenCountResponse,
    "anthropic-messages.message": anthropic.Message,
    "anthropic-messages.event": anthropic.RawMessageStreamEvent,
    "anthropic-messages.error": error_response.ErrorResponse,
    "anthropic-messages.count": anthropic.MessageTokensCount,
    "anthropic-messages.model": anthropic.ModelInfo,
    "gemini.response": gemini.GenerateContentResponse,
    "gemini.count": gemini.CountTokensResponse,
    "gemini.model": gemini.Model,
}


def schema(model):
    return TypeAdapter(model).json_schema(by_alias=True, mode="validation")


if __name__ == "__main__":
    json.dump({name: schema(model) for name, model in MODELS.items()}, sys.stdout)

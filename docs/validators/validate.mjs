// Validates the generated descriptions with public validators; ends with 1 when one of them is wrong.

import { readFile } from "node:fs/promises";

import { Parser } from "@asyncapi/parser";
import { Validator } from "@seriousme/openapi-schema-validator";

const read = (name) => readFile(new URL(`../../spec/${name}`, import.meta.url), "utf8");
let failed = false;

const openapi = await new Validator().validate(JSON.parse(await read("openapi.json")));
if (!openapi.valid) {
  failed = true;
  console.error("spec/openapi.json:", JSON.stringify(openapi.errors, null, 1).slice(0, 4000));
}

const { document, diagnostics } = await new Parser().parse(await read("asyncapi.json"));
const errors = diagnostics.filter((diagnostic) => diagnostic.severity === 0);
if (!document || errors.length > 0) {
  failed = true;
  for (const { message, path } of errors.slice(0, 20)) {
    console.error("spec/asyncapi.json:", path.join("/"), message);
  }
}

if (!failed) console.log("spec/openapi.json and spec/asyncapi.json are valid");
process.exitCode = failed ? 1 : 0;

// A reader of event streams over fetch: LF, CR and CR LF, cut anywhere. For browsers and Node.js.

export async function* events(response) {
  const decoder = new TextDecoder();
  let rest = "", event = "", data = [], id, afterCr = false;
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    let text = decoder.decode(part.value, { stream: true });
    if (afterCr && text.startsWith("\n")) text = text.slice(1);
    if (text) afterCr = text.endsWith("\r");
    const lines = (rest + text).split(/\r\n|\r|\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) yield { event: event || "message", data: data.join("\n"), id };
        [event, data, id] = ["", [], undefined];
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") data.push(value);
      else if (name === "event") event = value;
      else if (name === "id" && !value.includes("\0")) id = value;
    }
  }
}

//! OpenAPI 3.1 of `covel-sse`, from the table of endpoints.

use serde_json::{Map, Value, json};
use turnwire_spec::covel::{Endpoint, EndpointKind};

use super::components::Components;

/// The description.
pub(super) fn document(rows: &[Endpoint]) -> Value {
    let mut components = Components::default();
    let mut paths = Map::new();
    for row in rows {
        let path = braced(row.path);
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[row.method.to_ascii_lowercase()] = operation(row, &mut components);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "covel-sse",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions, actions and subscriptions over HTTP.",
        },
        "paths": paths,
        "components": { "schemas": components.into_value() },
    })
}

fn operation(row: &Endpoint, components: &mut Components) -> Value {
    let mut operation = json!({
        "operationId": id(row),
        "summary": row.doc,
        "description": format!("Source: {}.", row.source),
        "parameters": parameters(row),
        "responses": responses(row, components),
    });
    if let Some(name) = row.request {
        let schema = components.schema(name);
        operation["requestBody"] =
            json!({ "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn parameters(row: &Endpoint) -> Value {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    let own = row
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix(':'));
    let own = own.map(|name| parameter(name, "path"));
    own.chain(row.query.iter().map(|name| parameter(name, "query")))
        .collect()
}

fn responses(row: &Endpoint, components: &mut Components) -> Value {
    let media = match row.kind {
        EndpointKind::Stream => "text/event-stream",
        _ => "application/json",
    };
    let mut responses = Map::new();
    for status in row.success {
        let mut response = json!({ "description": "It is done." });
        if let Some(name) = row.response {
            response["content"] = json!({ media: { "schema": components.schema(name) } });
        }
        responses.insert(status.to_string(), response);
    }
    let error = components.schema("error");
    responses.insert(
        "default".to_owned(),
        json!({ "description": "It is refused.", "content": { "application/json": { "schema": error } } }),
    );
    Value::Object(responses)
}

/// `/a/:id` as `/a/{id}`.
fn braced(path: &str) -> String {
    let segment = |segment: &str| match segment.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn id(row: &Endpoint) -> String {
    let words = row.path.trim_start_matches("/api/");
    let plain = words.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    format!(
        "{}-{}",
        row.method.to_ascii_lowercase(),
        plain.replace("--", "-")
    )
}

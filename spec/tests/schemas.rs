//! Holds the checked-in schemas against the types.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use turnwire_spec::schema;

#[test]
fn the_checked_in_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let on_disk = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let rendered = schema::rendered();
    let stale: Vec<_> = rendered
        .iter()
        .filter(|(name, text)| on_disk(name) != *text)
        .map(|(name, _)| name)
        .collect();
    assert!(stale.is_empty(), "stale, run `cargo xtask gen`: {stale:?}");

    let expected: BTreeSet<_> = rendered.into_iter().map(|(name, _)| name).collect();
    let files = fs::read_dir(folder).unwrap();
    let found: BTreeSet<_> = files
        .map(|file| file.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        found, expected,
        "files that no type stands behind; remove them"
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to the manifest: its values, their types and their names.

use serde_json::{Value, json};

use super::random::Random;
use super::{bytes, hostile, number};

/// Makes one change.
pub fn change(random: &mut Random, text: &mut Vec<u8>) {
    match serde_json::from_slice::<Value>(text) {
        Ok(mut value) if !random.one_in(10) => {
            change_value(random, &mut value);
            *text = value.to_string().into_bytes();
        }
        _ => bytes::change(random, text),
    }
}

fn change_value(random: &mut Random, value: &mut Value) {
    let mut places = Vec::new();
    find(value, &mut String::new(), &mut places);
    let place = &places[random.below(places.len() as u64) as usize];
    if random.one_in(8) {
        return remove(value, place);
    }
    if let Some(value) = value.pointer_mut(place) {
        *value = other(random, value);
    }
}

/// Collects the JSON pointer of each value.
fn find(value: &Value, at: &mut String, places: &mut Vec<String>) {
    places.push(at.clone());
    let names: Vec<String> = match value {
        Value::Object(map) => map.keys().cloned().collect(),
        Value::Array(values) => (0..values.len()).map(|n| n.to_string()).collect(),
        _ => Vec::new(),
    };
    for name in names {
        let length = at.len();
        at.push('/');
        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
        if let Some(inner) = value.pointer(&at[length..]) {
            find(inner, at, places);
        }
        at.truncate(length);
    }
}

fn remove(value: &mut Value, place: &str) {
    let Some((parent, name)) = place.rsplit_once('/') else {
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.remove(name)),
        Some(Value::Array(values)) => drop(values.pop()),
        _ => {}
    }
}

/// Returns another value, mostly an extreme one of the same type.
fn other(random: &mut Random, value: &Value) -> Value {
    if random.one_in(6) {
        let others = [
            json!(null),
            json!(true),
            json!([]),
            json!({}),
            json!(""),
            json!(-1),
            json!(1e308),
        ];
        return others[random.below(others.len() as u64) as usize].clone();
    }
    match value {
        Value::Number(number) => json!(number::other(random, number.as_u64().unwrap_or(0))),
        Value::String(_) if random.one_in(3) => json!(number_text(random)),
        Value::String(_) => json!(hostile::text(random)),
        Value::Bool(value) => json!(!value),
        Value::Array(values) => again(random, values),
        Value::Object(map) => {
            let mut map = map.clone();
            map.insert(hostile::text(random), json!(number::extreme(random)));
            Value::Object(map)
        }
        Value::Null => json!(number::extreme(random)),
    }
}

/// Returns text like a device's number, with one or two numbers.
fn number_text(random: &mut Random) -> String {
    let (a, b) = (number::extreme(random), number::extreme(random));
    match random.below(3) {
        0 => format!("{a}"),
        _ => format!("{a}:{b}"),
    }
}

fn again(random: &mut Random, values: &[Value]) -> Value {
    let of = values
        .first()
        .cloned()
        .unwrap_or(json!(hostile::text(random)));
    Value::Array(vec![of; 1 + random.below(2000) as usize])
}

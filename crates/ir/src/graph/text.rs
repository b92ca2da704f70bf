//! The text form: one line per node, printed and parsed back to an equal graph.
//!
//! ```text
//! %0 = leaf {"name":"x","kind":"input","ty":{...}} () : f32[2,3] @["x"]
//! %1 = unary {"f":"relu"} (%0) : f32[2,3] #forward @["relu@main.rs:7"]
//! output "y" %1
//! update %3 %9
//! ```
//!
//! Attributes are the JSON form of the operation's payload. A parsed graph is verified before it is returned.

use super::lineage::Origin;
use super::{Graph, LeafKind, Node, NodeId, Op, Output, Region, Update, Value};
use crate::ops::Payload;
use crate::types::{DType, TensorType};
use std::collections::BTreeSet;
use std::fmt;

/// Why a text is no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// The line, from 1; 0 for faults of the whole graph.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.node.0)?;
        if self.result > 0 { write!(f, ".{}", self.result) } else { Ok(()) }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, node) in self.nodes.iter().enumerate() {
            let attributes = node.op.0.attributes();
            let inputs: Vec<String> = node.inputs.iter().map(ToString::to_string).collect();
            let types: Vec<String> = node.types.iter().map(ToString::to_string).collect();
            write!(f, "%{i} = {} {attributes} ({}) : ", node.op.0.name(), inputs.join(", "))?;
            write!(f, "{} #{}", types.join(" "), region_name(node.region))?;
            let labels = self.provenance(NodeId(i as u32));
            writeln!(f, " @{}", serde_json::to_string(&labels).map_err(|_| fmt::Error)?)?;
        }
        for o in &self.outputs {
            let name = serde_json::to_string(&o.name).map_err(|_| fmt::Error)?;
            writeln!(f, "output {name} {}", o.value)?;
        }
        self.updates.iter().try_for_each(|u| writeln!(f, "update %{} {}", u.leaf.0, u.value))
    }
}

fn region_name(r: Region) -> &'static str {
    match r {
        Region::Forward => "forward",
        Region::Derivative => "derivative",
        Region::Update => "update",
    }
}

impl std::str::FromStr for Graph {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Graph, ParseError> {
        let mut g = Graph::new();
        for (i, line) in text.lines().enumerate() {
            let mut cursor = Cursor { rest: line.trim(), origin: g.lineage.own() };
            if !cursor.rest.is_empty() {
                cursor.line(&mut g).map_err(|what| ParseError { line: i + 1, what })?;
            }
        }
        match g.verify().first() {
            None => Ok(g),
            Some(fault) => Err(ParseError { line: 0, what: fault.to_string() }),
        }
    }
}

struct Cursor<'a> {
    rest: &'a str,
    /// Of the values that are read.
    origin: Origin,
}

impl<'a> Cursor<'a> {
    fn line(&mut self, g: &mut Graph) -> Result<(), String> {
        if self.take("output ") {
            let name: String = self.json()?;
            let value = self.value()?;
            g.outputs.push(Output { name, value });
        } else if self.take("update ") {
            let leaf = self.value()?.node;
            let value = self.value()?;
            g.updates.push(Update { leaf, value });
        } else {
            self.node(g)?;
        }
        if self.rest.is_empty() { Ok(()) } else { Err(format!("unexpected '{}'", self.rest)) }
    }

    fn node(&mut self, g: &mut Graph) -> Result<(), String> {
        let id = self.value()?.node;
        if id.index() != g.nodes.len() {
            return Err(format!("expected node %{}, found %{}", g.nodes.len(), id.0));
        }
        self.expect("=")?;
        let name = self.word();
        let attributes: serde_json::Value = self.json()?;
        let payload = Payload::from_attributes(name, attributes)?;
        self.expect("(")?;
        let mut inputs = Vec::new();
        while !self.take(")") {
            inputs.push(self.value()?);
            self.take(",");
        }
        self.expect(":")?;
        let mut types = Vec::new();
        while !self.rest.starts_with(['#', '@']) {
            types.push(self.ty()?);
        }
        self.expect("#")?;
        let region = match self.word() {
            "forward" => Region::Forward,
            "derivative" => Region::Derivative,
            "update" => Region::Update,
            other => return Err(format!("unknown region '{other}'")),
        };
        self.expect("@")?;
        let labels: Vec<String> = self.json()?;
        let labels: BTreeSet<u32> = labels.into_iter().map(|l| g.intern(l)).collect();
        if let Payload::Leaf(leaf) = &payload {
            if !matches!(leaf.kind, LeafKind::Constant(_)) {
                g.check_name(&leaf.name)?;
                g.names.insert(leaf.name.clone(), id);
            } else if !leaf.name.is_empty() {
                return Err(format!("a constant has the name '{}'", leaf.name));
            }
        }
        g.nodes.push(Node { op: Op(payload), inputs, types, region, labels });
        Ok(())
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(format!("expected '{token}' at '{}'", self.rest)) }
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let word = self.word();
        word.parse().map_err(|_| format!("'{word}' is no number"))
    }

    fn value(&mut self) -> Result<Value, String> {
        self.expect("%")?;
        let node = NodeId(self.number()?);
        let result = if self.take(".") { self.number()? } else { 0 };
        Ok(Value { node, result, origin: self.origin })
    }

    fn ty(&mut self) -> Result<TensorType, String> {
        let name = self.word();
        let dtype = DType::from_name(name).ok_or_else(|| format!("'{name}' is no dtype"))?;
        self.expect("[")?;
        let mut dims = Vec::new();
        while !self.take("]") {
            dims.push(self.number()?);
            self.take(",");
        }
        Ok(TensorType { dtype, dims })
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<T>();
        let value = stream.next().ok_or("expected a JSON value")?.map_err(|e| e.to_string())?;
        let at = stream.byte_offset();
        self.rest = self.rest.get(at..).unwrap_or("").trim_start();
        Ok(value)
    }
}

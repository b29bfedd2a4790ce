//! XDMF: a text that tells ParaView where arrays lie in `.npy` files beside it.
//!
//! # Source
//! *XDMF model and format*, <https://www.xdmf.org/index.php/XDMF_Model_and_Format>.

use std::{fmt::Write, path::Path};

use super::{
    kind::Kind,
    placed::{Place, Placed},
    variable::{Attribute, Attributes, Variable},
    visit::Failure,
    vtk::escaped,
};

/// What it cannot hold.
pub(super) fn check(variables: &[Variable]) -> Result<(), Failure> {
    let Some(first) = variables.first() else { return Err(Failure::Format("needs an array of values".into())) };
    let shape = &first.shape[..first.shape.len().min(3)];
    for Variable { name, kind, shape: own, .. } in variables {
        if matches!(kind, Kind::Complex(_) | Kind::Opaque(_)) {
            return Err(Failure::Format(format!("cannot hold \"{name}\": XDMF has real numbers only")));
        }
        if own.strip_prefix(shape).is_none_or(|components| components.len() > 1) {
            return Err(Failure::Format(format!("cannot hold \"{name}\" of shape {own:?} beside values of shape {shape:?}")));
        }
    }
    Ok(())
}

/// The text for arrays in these places, which were checked.
pub(super) fn text(arrays: &[(&Variable, Placed)], attributes: &Attributes) -> String {
    let (first, _) = arrays[0];
    let shape = &first.shape[..first.shape.len().min(3)];
    let join = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    let reals = |given: &[f64], missing: f64| {
        (0..3)
            .map(|k: usize| k.checked_sub(3 - shape.len()).and_then(|k| given.get(k)).unwrap_or(&missing).to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let points: Vec<usize> = vec![1; 3 - shape.len()].into_iter().chain(shape.iter().copied()).collect();
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n<Xdmf Version=\"3.0\">\n<Domain>\n<Grid Name=\"{}\" GridType=\"Uniform\">\n\
         <Topology TopologyType=\"3DCoRectMesh\" Dimensions=\"{}\"/>\n<Geometry GeometryType=\"ORIGIN_DXDYDZ\">\n\
         <DataItem Dimensions=\"3\">{}</DataItem>\n<DataItem Dimensions=\"3\">{}</DataItem>\n</Geometry>\n",
        escaped(&first.name),
        join(&points),
        reals(&first.origin, 0.0),
        reals(&first.spacing, 1.0)
    );
    // PyVista reads no grid without a time.
    let time = attributes.iter().find_map(|(name, value)| match value {
        Attribute::Real(time) if name == "time" => Some(*time),
        _ => None,
    });
    let _ = writeln!(text, "<Time Value=\"{}\"/>", time.unwrap_or(0.0));
    for (name, value) in attributes {
        let value = match value {
            Attribute::Text(text) => text.clone(),
            Attribute::Integer(value) => value.to_string(),
            Attribute::Real(value) => value.to_string(),
            Attribute::Integers(values) => format!("{values:?}"),
            Attribute::Reals(values) => format!("{values:?}"),
        };
        let _ = writeln!(text, "<Information Name=\"{}\" Value=\"{}\"/>", escaped(name), escaped(&value));
    }
    for (variable, placed) in arrays {
        let Place::Contiguous { file, begin } = &placed.place else { continue };
        let (number, size) = match variable.kind {
            Kind::Signed(size) => ("Int", size),
            Kind::Unsigned(size) => ("UInt", size),
            Kind::Float(size) => ("Float", size),
            Kind::Complex(size) | Kind::Opaque(size) => ("UChar", size),
        };
        let kind = if variable.shape.len() > shape.len() { "Vector" } else { "Scalar" };
        let mut dimensions = points.clone();
        dimensions.extend(&variable.shape[shape.len()..]);
        let name = file.file_name().map(Path::new).unwrap_or(file);
        let _ = writeln!(
            text,
            "<Attribute Name=\"{}\" AttributeType=\"{kind}\" Center=\"Node\">\n<DataItem Dimensions=\"{}\" NumberType=\"{number}\" \
             Precision=\"{size}\" Format=\"Binary\" Endian=\"Little\" Seek=\"{begin}\">{}</DataItem>\n</Attribute>",
            escaped(&variable.name),
            join(&dimensions),
            escaped(&name.to_string_lossy())
        );
    }
    text + "</Grid>\n</Domain>\n</Xdmf>\n"
}

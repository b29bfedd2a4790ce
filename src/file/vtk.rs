//! Files of VTK, which ParaView opens: images (`.vti`), rectilinear grids (`.vtr`) and particles (`.vtp`), and collections of them (`.pvd`).
//!
//! ```text
//!  <?xml version="1.0"?> <VTKFile …> … <DataArray … format="appended" offset="0"/> … <AppendedData encoding="raw"> _
//!  length of the first array in bytes, 8 B; its elements; the same for the others; </AppendedData> </VTKFile>
//! ```
//!
//! x changes fastest in VTK, as does the last axis of an array in C order: the axes of an array are z, y, x. An array of one axis more than the
//! grid has vectors. Grids have values at points; those of a rectilinear grid with one element less than there are coordinates are those of cells.
//!
//! # Source
//! *VTK file formats*, <https://docs.vtk.org/en/latest/design_documents/VTKFileFormats.html>.

use std::{
    fmt::Write as _,
    fs::File,
    io::Read,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    contents::Contents,
    kind::Kind,
    placed::{Place, Placed},
    variable::{Attribute, Attributes, Variable},
    visit::Failure,
};
use crate::memory::limits;

/// What stands around the elements.
const APPENDED: &str = "<AppendedData encoding=\"raw\">\n_";
const END: &str = "\n</AppendedData>\n</VTKFile>\n";
/// No text before the elements is longer.
const LONGEST: u64 = 16 << 20;
/// The array of particles' places, in files of them.
pub(super) const POINTS: &str = "points";

/// What a file is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grid {
    Image,
    Rectilinear,
    Particles,
}

impl Grid {
    /// That of a file with these arrays: places make particles, coordinates of axes a rectilinear grid.
    pub(super) fn of(variables: &[Variable]) -> Grid {
        if variables.iter().any(|variable| variable.name == POINTS) {
            Grid::Particles
        } else if variables.iter().any(Variable::is_coordinate) {
            Grid::Rectilinear
        } else {
            Grid::Image
        }
    }

    pub(super) fn ending(self) -> &'static str {
        match self {
            Grid::Image => "vti",
            Grid::Rectilinear => "vtr",
            Grid::Particles => "vtp",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Grid::Image => "ImageData",
            Grid::Rectilinear => "RectilinearGrid",
            Grid::Particles => "PolyData",
        }
    }
}

/// The arrays behind the text of a file that is being made.
#[derive(Default)]
struct Appended {
    /// Where each begins behind the text, with its length, and its bytes.
    arrays: Vec<[u64; 2]>,
    len: u64,
}

impl Appended {
    /// Adds an array; returns the element that describes it.
    fn add(&mut self, name: &str, kind: Kind, components: usize, len: usize) -> Result<String, Failure> {
        let (kind, components) = match kind {
            Kind::Signed(bytes) => (format!("Int{}", 8 * bytes), components),
            Kind::Unsigned(bytes) => (format!("UInt{}", 8 * bytes), components),
            Kind::Float(bytes) => (format!("Float{}", 8 * bytes), components),
            Kind::Complex(bytes) => (format!("Float{}", 4 * bytes), 2 * components),
            Kind::Opaque(_) => return Err(Failure::Format(format!("cannot hold \"{name}\": VTK has numbers only"))),
        };
        let size: u64 = kind.trim_start_matches(char::is_alphabetic).parse::<u64>().map_or(8, |bits| bits / 8);
        let bytes = size * components as u64 * len as u64;
        let element = format!(
            "<DataArray type=\"{kind}\" Name=\"{}\" NumberOfComponents=\"{components}\" format=\"appended\" offset=\"{}\"/>\n",
            escaped(name),
            self.len
        );
        self.arrays.push([self.len, bytes]);
        self.len += 8 + bytes;
        Ok(element)
    }
}

/// Makes a file, and returns where the elements of each array go.
pub(super) fn create(path: &Path, grid: Grid, variables: &[Variable], attributes: &Attributes) -> Result<Vec<Placed>, Failure> {
    let mut appended = Appended::default();
    let mut own = Vec::new();
    let (opening, inside, values) = match grid {
        Grid::Particles => particles(variables, &mut appended, &mut own)?,
        _ => cells_or_points(grid, variables, &mut appended, &mut own)?,
    };
    let name = grid.name();
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"{name}\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<{name}{opening}>\n"
    );
    text += &field_data(attributes);
    let _ = write!(text, "{inside}{values}</Piece>\n</{name}>\n{APPENDED}");
    let begin = text.len() as u64;
    let len = begin + appended.len + END.len() as u64;
    limits::check_file(len)?;
    let file = File::options().write(true).create_new(true).open(path)?;
    file.set_len(len)?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.write_all_at(END.as_bytes(), len - END.len() as u64)?;
    for [at, bytes] in &appended.arrays {
        file.write_all_at(&bytes.to_le_bytes(), begin + at)?;
    }
    for (array, numbers) in own {
        let mut at = begin + appended.arrays[array][0] + 8;
        for bytes in numbers {
            file.write_all_at(&bytes, at)?;
            at += bytes.len() as u64;
        }
    }
    let placed = variables.iter().zip(&appended.arrays).map(|(variable, [at, _])| Placed {
        kind: variable.kind,
        shape: variable.shape.clone(),
        is_reversed: false,
        is_swapped: false,
        place: Place::Contiguous { file: path.to_owned(), begin: begin + at + 8 },
    });
    Ok(placed.collect())
}

/// Arrays that no program gave: number of the array, and its bytes, some at a time.
type Own = Vec<(usize, Box<dyn Iterator<Item = Vec<u8>>>)>;
/// Attributes of the grid, what stands before the values, and the values.
type Parts = (String, String, String);

fn particles(variables: &[Variable], appended: &mut Appended, own: &mut Own) -> Result<Parts, Failure> {
    let points = variables.iter().find(|variable| variable.name == POINTS).map(|points| points.shape.clone());
    let Some([count, 3]) = points.as_deref().and_then(|shape| <[usize; 2]>::try_from(shape).ok()) else {
        return Err(Failure::Format(format!("needs the places of particles, an array \"{POINTS}\" of n × 3, not {points:?}")));
    };
    let (mut places, mut values, mut scalars) = (String::new(), String::new(), None);
    for variable in variables {
        let components = match variable.shape[..] {
            [len] if len == count => 1,
            [len, components] if len == count => components,
            _ => return Err(misfit(variable, &[count])),
        };
        let element = appended.add(&variable.name, variable.kind, components, count)?;
        *if variable.name == POINTS { &mut places } else { &mut values } += &element;
        if components == 1 && scalars.is_none() {
            scalars = Some(format!(" Scalars=\"{}\"", escaped(&variable.name)));
        }
    }
    let scalars = scalars.unwrap_or_default();
    // A vertex for each.
    let vertices = |first: i64| {
        const SOME: usize = 1 << 16;
        let numbers = (0..count)
            .step_by(SOME)
            .map(move |from| (from..count.min(from + SOME)).flat_map(|number| (number as i64 + first).to_le_bytes()).collect());
        Box::new(numbers) as Box<dyn Iterator<Item = Vec<u8>>>
    };
    let mut lists = String::new();
    for (name, first) in [("connectivity", 0), ("offsets", 1)] {
        own.push((appended.arrays.len(), vertices(first)));
        lists += &appended.add(name, Kind::Signed(8), 1, count)?;
    }
    let inside = format!(
        "<Piece NumberOfPoints=\"{count}\" NumberOfVerts=\"{count}\" NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"0\">\n\
         <Points>\n{places}</Points>\n<Verts>\n{lists}</Verts>\n"
    );
    Ok((String::new(), inside, format!("<PointData{scalars}>\n{values}</PointData>\n")))
}

fn cells_or_points(grid: Grid, variables: &[Variable], appended: &mut Appended, own: &mut Own) -> Result<Parts, Failure> {
    let Some(first) = variables.iter().find(|variable| !variable.is_coordinate()) else {
        return Err(Failure::Format("needs an array of values".into()));
    };
    let shape = &first.shape[..first.shape.len().min(3)];
    // x, y, z: the last axis first.
    let of = |axis: usize| shape.len().checked_sub(axis + 1);
    let coordinate = |axis: usize| {
        let name = first.axes.get(of(axis)?)?;
        variables.iter().find(|variable| variable.is_coordinate() && variable.name == *name)
    };
    let mut points = [0, 1, 2].map(|axis| of(axis).map_or(1, |axis| shape[axis]));
    let is_of_cells = (0..3).any(|axis| coordinate(axis).is_some_and(|of| of.shape[0] == points[axis] + 1));
    if is_of_cells {
        points = points.map(|cells| cells + 1);
    }
    let mut values = String::new();
    let mut placed = vec![String::new(); 3];
    for variable in variables {
        if variable.is_coordinate() {
            let axis = (0..3).find(|&axis| coordinate(axis).is_some_and(|of| of.name == variable.name));
            let Some(axis) = axis.filter(|&axis| variable.shape[0] == points[axis]) else {
                return Err(misfit(variable, shape));
            };
            placed[axis] = appended.add(&variable.name, variable.kind, 1, variable.shape[0])?;
            continue;
        }
        let components = match variable.shape.strip_prefix(shape) {
            Some([]) => 1,
            Some([components]) => *components,
            _ => return Err(misfit(variable, shape)),
        };
        values += &appended.add(&variable.name, variable.kind, components, shape.iter().product())?;
    }
    let extent = points.map(|points| format!("0 {}", points as i64 - 1)).join(" ");
    let three = |of: &[f64], missing: f64| {
        let given = |axis: usize| shape.len().checked_sub(axis + 1).and_then(|axis| of.get(axis)).copied().unwrap_or(missing);
        [0, 1, 2].map(given)
    };
    let (origin, spacing) = (three(&first.origin, 0.0), three(&first.spacing, 1.0));
    let (mut opening, mut inside) = (format!(" WholeExtent=\"{extent}\""), format!("<Piece Extent=\"{extent}\">\n"));
    if grid == Grid::Image {
        let text = |of: [f64; 3]| of.map(|value| value.to_string()).join(" ");
        let _ = write!(opening, " Origin=\"{}\" Spacing=\"{}\"", text(origin), text(spacing));
    } else {
        inside += "<Coordinates>\n";
        for (axis, element) in placed.into_iter().enumerate() {
            if element.is_empty() {
                let numbers = (0..points[axis]).flat_map(|k| (origin[axis] + k as f64 * spacing[axis]).to_le_bytes()).collect();
                own.push((appended.arrays.len(), Box::new(std::iter::once(numbers))));
                inside += &appended.add(["x", "y", "z"][axis], Kind::Float(8), 1, points[axis])?;
            } else {
                inside += &element;
            }
        }
        inside += "</Coordinates>\n";
    }
    let data = if is_of_cells { "CellData" } else { "PointData" };
    Ok((opening, inside, format!("<{data} Scalars=\"{}\">\n{values}</{data}>\n", escaped(&first.name))))
}

fn misfit(variable: &Variable, expected: &[usize]) -> Failure {
    let Variable { name, shape, .. } = variable;
    Failure::Format(format!("cannot hold \"{name}\" of shape {shape:?} beside values of shape {expected:?}"))
}

fn field_data(attributes: &Attributes) -> String {
    if attributes.is_empty() {
        return String::new();
    }
    let mut text = String::from("<FieldData>\n");
    for (name, value) in attributes {
        let join = |values: &[f64]| (values.len(), values.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
        let whole = |values: &[i64]| (values.len(), values.iter().map(i64::to_string).collect::<Vec<_>>().join(" "));
        let (kind, (count, values)) = match value {
            // As codes of characters, with a zero at the end.
            Attribute::Text(text) => {
                ("String", (1, text.bytes().chain([0]).map(|byte| byte.to_string()).collect::<Vec<_>>().join(" ")))
            }
            Attribute::Integer(value) => ("Int64", whole(&[*value])),
            Attribute::Integers(values) => ("Int64", whole(values)),
            Attribute::Real(value) => ("Float64", join(&[*value])),
            Attribute::Reals(values) => ("Float64", join(values)),
        };
        let _ = writeln!(
            text,
            "<DataArray type=\"{kind}\" Name=\"{}\" NumberOfTuples=\"{count}\" format=\"ascii\">{values}</DataArray>",
            escaped(name)
        );
    }
    text + "</FieldData>\n"
}

/// A text as the value of an attribute in XML.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\n', "&#10;")
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    text.replace("&#10;", "\n").replace("&amp;", "&")
}

/// Tags of an XML text in order: name, and attributes. Comments and declarations are left out.
fn tags(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('<').skip(1).filter_map(|tag| {
        let (tag, _) = tag.split_once('>')?;
        let tag = tag.strip_suffix('/').unwrap_or(tag);
        (!tag.starts_with(['!', '?'])).then(|| tag.split_once(char::is_whitespace).unwrap_or((tag, "")))
    })
}

/// The value of an attribute of a tag.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        let (value, next) = after[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(unescaped(value));
        }
        rest = next;
    }
}

/// What an image, a rectilinear grid or a file of particles holds: appended raw arrays, not compressed.
pub(super) fn open(path: &Path) -> Result<Contents, Failure> {
    let file = File::open(path)?;
    let present = file.metadata()?.len();
    let (text, begin) = text_of(&file)?;
    let refused = |what: String| Err(Failure::Format(what));
    let found = |tag: &str| tags(&text).find(|(name, _)| *name == tag).map(|(_, attributes)| attributes);
    let Some(head) = found("VTKFile") else { return refused("is no VTK file in XML".into()) };
    if attribute(head, "compressor").is_some() {
        return refused("is compressed; write it without a compressor".into());
    }
    let is_swapped = attribute(head, "byte_order").is_some_and(|order| order == "BigEndian");
    let header = match attribute(head, "header_type").as_deref() {
        Some("UInt64") => 8,
        None | Some("UInt32") => 4,
        Some(other) => return refused(format!("has lengths of type {other}; UInt32 and UInt64 are known")),
    };
    if tags(&text).filter(|(name, _)| *name == "Piece").count() != 1 {
        return refused("does not have one piece".into());
    }
    let grid = attribute(head, "type").unwrap_or_default();
    let piece = found("Piece").unwrap_or_default();
    let count = |name: &str| attribute(piece, name).and_then(|number| number.parse::<usize>().ok());
    let (points, origin, spacing) = match (grid.as_str(), attribute(piece, "Extent")) {
        ("PolyData", _) => (vec![count("NumberOfPoints").unwrap_or(0)], Vec::new(), Vec::new()),
        ("ImageData" | "RectilinearGrid", Some(extent)) => {
            let Some(points) = extents(&extent) else { return refused(format!("has the extent {extent:?}")) };
            let of = |name: &str| found(&grid).and_then(|tag| attribute(tag, name)).and_then(|text| three(&text));
            (points, of("Origin").unwrap_or_default(), of("Spacing").unwrap_or_default())
        }
        _ => return refused(format!("is a VTK file of type {grid:?}; ImageData, RectilinearGrid and PolyData are known")),
    };
    let mut contents = Contents::default();
    let mut inside = "";
    for (tag, attributes) in tags(&text) {
        match tag {
            "PointData" | "CellData" | "Coordinates" | "Points" | "Verts" | "FieldData" => inside = tag,
            "/PointData" | "/CellData" | "/Coordinates" | "/Points" | "/Verts" | "/FieldData" => inside = "",
            "DataArray" if ["PointData", "CellData", "Coordinates", "Points"].contains(&inside) => {
                let name = attribute(attributes, "Name").unwrap_or_default();
                let (Some(kind), Some("appended")) =
                    (attribute(attributes, "type").and_then(|name| kind(&name)), attribute(attributes, "format").as_deref())
                else {
                    return refused(format!("has \"{name}\" not as appended raw numbers"));
                };
                let number = |of: &str| attribute(attributes, of).map(|number| number.parse::<usize>());
                let (Some(Ok(offset)), components) = (number("offset"), number("NumberOfComponents").unwrap_or(Ok(1))) else {
                    return refused(format!("has \"{name}\" at no offset"));
                };
                let Ok(components) = components else { return refused(format!("has \"{name}\" of no known components")) };
                let Some(at) = begin.checked_add(offset as u64) else { return refused(format!("has \"{name}\" at no offset")) };
                let mut len = [0; 8];
                file.read_exact_at(&mut len[..header], at)?;
                if is_swapped {
                    len[..header].reverse();
                }
                let len = u64::from_le_bytes(len);
                let mut shape = match inside {
                    "CellData" => points.iter().map(|points| points.saturating_sub(1).max(1)).collect(),
                    "Coordinates" => vec![len as usize / kind.size()],
                    _ => points.clone(),
                };
                if components != 1 {
                    shape.push(components);
                }
                let mut variable = Variable::new(if inside == "Points" { POINTS } else { &name }, kind, &shape);
                if inside == "Coordinates" {
                    variable.axes = vec![name.clone()];
                } else if inside != "Points" && components == 1 {
                    (variable.origin, variable.spacing) = (origin.clone(), spacing.clone());
                }
                if variable.bytes() != Some(len)
                    || (header as u64).checked_add(len).and_then(|len| at.checked_add(len)).is_none_or(|end| end > present)
                {
                    return refused(format!("has {len} bytes of \"{name}\"; its shape {shape:?} needs {:?}", variable.bytes()));
                }
                let place = Place::Contiguous { file: path.to_owned(), begin: at + header as u64 };
                contents.arrays.push((
                    variable,
                    Placed { kind, shape, is_reversed: false, is_swapped: is_swapped && kind.number() > 1, place },
                ));
            }
            _ => {}
        }
    }
    Ok(contents)
}

/// What stands before the appended arrays, and where these begin.
fn text_of(file: &File) -> Result<(String, u64), Failure> {
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    let find = |what: &[u8], from: usize| bytes[from..].windows(what.len()).position(|window| window == what).map(|at| from + at);
    let Some(begin) = find(b"<AppendedData", 0) else {
        return Err(Failure::Format("has no appended data: only appended raw arrays are read".into()));
    };
    let Some(raw) = find(b">", begin).filter(|&end| bytes[begin..end].windows(5).any(|window| window == b"\"raw\"")) else {
        return Err(Failure::Format("has appended data that are not raw".into()));
    };
    let Some(mark) = find(b"_", raw) else { return Err(Failure::Format("has no appended data".into())) };
    let text =
        std::str::from_utf8(&bytes[..begin]).map_err(|error| Failure::Format(format!("has no text before its data: {error}")))?;
    Ok((text.to_owned(), mark as u64 + 1))
}

fn kind(name: &str) -> Option<Kind> {
    let bits = |prefix| name.strip_prefix(prefix).and_then(|bits| bits.parse::<usize>().ok());
    let descr = match (bits("Int"), bits("UInt"), bits("Float")) {
        (Some(bits), _, _) => format!("i{}", bits / 8),
        (_, Some(bits), _) => format!("u{}", bits / 8),
        (_, _, Some(bits)) => format!("f{}", bits / 8),
        _ => return None,
    };
    Kind::named(&descr).map(|(kind, _)| kind)
}

/// Points along z, y, x of an extent.
fn extents(text: &str) -> Option<Vec<usize>> {
    let bounds: Vec<i64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [x0, x1, y0, y1, z0, z1] = bounds[..] else { return None };
    let points = |low: i64, high: i64| usize::try_from(high.checked_sub(low)?.checked_add(1)?).ok();
    Some(vec![points(z0, z1)?, points(y0, y1)?, points(x0, x1)?])
}

/// Values of z, y, x.
fn three(text: &str) -> Option<Vec<f64>> {
    let mut values: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    values.reverse();
    (values.len() == 3).then_some(values)
}

/// Times and files of a collection.
pub(super) fn collection(text: &str) -> Result<Vec<(f64, PathBuf)>, Failure> {
    if !tags(text).any(|(name, attributes)| name == "VTKFile" && attribute(attributes, "type").as_deref() == Some("Collection")) {
        return Err(Failure::Format("is no collection of VTK files".into()));
    }
    let entry = |(name, attributes): (&str, &str)| {
        let time = attribute(attributes, "timestep")?.parse().ok()?;
        (name == "DataSet").then_some((time, attribute(attributes, "file")?.into()))
    };
    Ok(tags(text).filter_map(entry).collect())
}

/// The text of a collection.
pub(super) fn collection_text(steps: &[(f64, PathBuf)]) -> String {
    let mut text = String::from("<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n");
    for (time, file) in steps {
        let _ = writeln!(text, "<DataSet timestep=\"{time}\" file=\"{}\"/>", escaped(&file.to_string_lossy()));
    }
    text + "</Collection>\n</VTKFile>\n"
}

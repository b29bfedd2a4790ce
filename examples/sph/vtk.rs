//! Particles as a VTK XML file of polygonal data (`.vtp`), which ParaView opens: one vertex for each, with pressure, density,
//! velocity and number; and the collection (`.pvd`) that gives each file its time.
//!
//! Arrays are appended to the XML text as raw little-endian numbers, each after its length in bytes.
//!
//! # Source
//! *VTK file formats*, <https://docs.vtk.org/en/latest/design_documents/VTKFileFormats.html>.

use std::fmt::Write;

use crate::particle::{Fluid, Moving, Particle};

/// Arrays that follow the text, and the elements that name them.
#[derive(Default)]
struct Appended {
    bytes: Vec<u8>,
}

impl Appended {
    /// Appends an array and returns the element that describes it.
    fn array<const N: usize>(
        &mut self,
        name: &str,
        kind: &str,
        components: usize,
        numbers: impl Iterator<Item = [u8; N]>,
    ) -> String {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 8]);
        numbers.for_each(|number| self.bytes.extend_from_slice(&number));
        let length = (self.bytes.len() - offset - 8) as u64;
        self.bytes[offset..offset + 8].copy_from_slice(&length.to_le_bytes());
        format!(
            "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"appended\" offset=\"{offset}\"/>\n"
        )
    }

    fn vectors<const D: usize>(&mut self, name: &str, vectors: impl Iterator<Item = [f64; D]>) -> String {
        let spatial = vectors.flat_map(|vector| (0..3).map(move |axis| vector.get(axis).copied().unwrap_or(0.0)));
        self.array(name, "Float64", 3, spatial.map(f64::to_le_bytes))
    }
}

/// A scalar field with its name.
pub(crate) type Scalar<'a, P> = (&'a str, &'a dyn Fn(&P) -> f64);

/// The file of one frame of weakly compressible fluid.
pub(crate) fn frame<const D: usize>(fluid: &Fluid<D>, particles: &[Particle<D>]) -> Vec<u8> {
    let pressure: Scalar<'_, Particle<D>> = ("pressure", &|p| fluid.pressure(p.density));
    file(particles, &[pressure, ("density", &|p| p.density)], |p| p.velocity)
}

/// The file of one frame. The first scalar colors the particles.
pub(crate) fn file<const D: usize, P: Moving<D>>(
    particles: &[P],
    scalars: &[Scalar<'_, P>],
    velocity: impl Fn(&P) -> [f64; D],
) -> Vec<u8> {
    let count = particles.len();
    let mut data = Appended::default();
    let each = || particles.iter();
    let named = |(name, value): &Scalar<'_, P>| data.array(name, "Float64", 1, each().map(|p| value(p).to_le_bytes()));
    let values: String = scalars.iter().map(named).collect();
    let colored = scalars[0].0;
    let velocity = data.vectors("velocity", each().map(velocity));
    let number = data.array("number", "Int64", 1, each().map(|p| i64::from(p.id()).to_le_bytes()));
    let points = data.vectors("Points", each().map(|p| *p.position()));
    let connectivity = data.array("connectivity", "Int64", 1, (0..count as i64).map(i64::to_le_bytes));
    let offsets = data.array("offsets", "Int64", 1, (1..=count as i64).map(i64::to_le_bytes));
    let mut file = format!(
        "<?xml version=\"1.0\"?>\n\
         <VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<PolyData>\n\
         <Piece NumberOfPoints=\"{count}\" NumberOfVerts=\"{count}\" NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"0\">\n\
         <PointData Scalars=\"{colored}\" Vectors=\"velocity\">\n{values}{velocity}{number}</PointData>\n\
         <Points>\n{points}</Points>\n<Verts>\n{connectivity}{offsets}</Verts>\n</Piece>\n</PolyData>\n\
         <AppendedData encoding=\"raw\">\n_"
    )
    .into_bytes();
    file.append(&mut data.bytes);
    file.extend_from_slice(b"\n</AppendedData>\n</VTKFile>\n");
    file
}

/// The collection of frames: times in seconds and names of files beside it.
pub(crate) fn collection(frames: &[(f64, String)]) -> String {
    let mut text = String::from("<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n");
    for (time, file) in frames {
        let _ = writeln!(text, "<DataSet timestep=\"{time}\" file=\"{file}\"/>");
    }
    text + "</Collection>\n</VTKFile>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;

    #[test]
    fn arrays_stand_where_the_text_says() {
        let case = Case::taylor_green(0.1, 1.0, 100.0);
        let particles: Vec<_> = (0..3).map(|id| case.particle(id)).collect();
        let file = frame(&case.fluid, &particles);
        let begin = file.windows(3).position(|window| window == b">\n_").unwrap() + 3;
        let text = std::str::from_utf8(&file[..begin]).unwrap();
        let offset_of = |name: &str| {
            let element = &text[text.find(&format!("Name=\"{name}\"")).unwrap()..];
            let digits = &element[element.find("offset=\"").unwrap() + 8..];
            digits[..digits.find('"').unwrap()].parse::<usize>().unwrap()
        };
        let word = |at: usize| <[u8; 8]>::try_from(&file[at..at + 8]).unwrap();
        let points = begin + offset_of("Points");
        assert_eq!(u64::from_le_bytes(word(points)), 3 * 3 * 8);
        // x, y, z of the second particle.
        let xyz: Vec<f64> = (0..3).map(|k| f64::from_le_bytes(word(points + 8 + 24 + 8 * k))).collect();
        assert_eq!(xyz, [particles[1].position[0], particles[1].position[1], 0.0]);
        let offsets = begin + offset_of("offsets");
        assert_eq!(i64::from_le_bytes(word(offsets + 8 + 16)), 3);
        assert!(file.ends_with(b"</AppendedData>\n</VTKFile>\n"));
    }
}

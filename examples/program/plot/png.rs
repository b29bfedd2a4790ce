//! PNG files in memory, so that what reaches the disk is a whole file or an error that says why.
//!
//! # Source
//! *Portable Network Graphics (PNG) Specification*, W3C.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

/// The file of a picture: three bytes for each pixel, rows from above.
pub(crate) fn encode(pixels: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::fast());
    let mut compressed = || {
        for row in pixels.chunks(3 * width as usize) {
            // Each row begins with its filter: none.
            rows.write_all(&[0])?;
            rows.write_all(row)?;
        }
        rows.try_finish()
    };
    compressed().expect("memory takes all that is written");
    let data = rows.finish().expect("memory takes all that is written");
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // Eight bits, true colour, and the only methods there are.
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    for (kind, data) in [(b"IHDR", &header), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        file.extend_from_slice(&(data.len() as u32).to_be_bytes());
        let mut sum = Crc::new();
        sum.update(kind);
        sum.update(data);
        file.extend_from_slice(kind);
        file.extend_from_slice(data);
        file.extend_from_slice(&sum.sum().to_be_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_picture() {
        let file = encode(&[1, 2, 3], (1, 1));
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        // The chunk that ends every PNG file.
        assert!(file.ends_with(b"\0\0\0\0IEND\xaeB`\x82"));
        let length = u32::from_be_bytes(file[33..37].try_into().unwrap()) as usize;
        let mut row = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&file[41..41 + length]), &mut row).unwrap();
        assert_eq!(row, [0, 1, 2, 3]);
    }
}

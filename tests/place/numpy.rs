//! Bytes of `.npy` files.

/// A file as `numpy.save` writes it, in format 1.0.
pub(crate) fn numpy(text: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(text.bytes());
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    bytes.extend(elements);
    bytes
}

/// `numpy.arange(6, dtype='<i4').reshape(2, 3)`.
pub(crate) fn reference() -> Vec<u8> {
    numpy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", &le(0..6))
}

pub(crate) fn le(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

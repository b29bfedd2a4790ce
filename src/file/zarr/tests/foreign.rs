//! Stores of other programs, and stores that are damaged.

use super::*;

pub(super) fn array_of_version_3(shape: Value, chunk: Value, data_type: &str, codecs: Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "codecs": codecs, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 9,
    })
}

#[test]
fn version_2_is_read() {
    let json = |order: &str, separator: &str, compressor: Value| {
        json!({"zarr_format": 2, "shape": [2, 3], "chunks": [2, 2], "dtype": ">i2", "fill_value": 9, "order": order,
            "filters": null, "compressor": compressor, "dimension_separator": separator})
    };
    let expected: Vec<u8> = [1_i16, 2, 9, 3, 4, 9].iter().flat_map(|value| value.to_le_bytes()).collect();
    let zlib = json!({"id": "zlib", "level": 1});
    let attributes = json!({"_ARRAY_DIMENSIONS": ["y", "x"], "units": "m"}).to_string();
    let rows: Vec<u8> = vec![0, 1, 0, 2, 0, 3, 0, 4];
    let encoded = chunks::encode(&[Codec::Zlib(1)], &rows).unwrap();
    for (json, chunk) in [
        (json("C", ".", Value::Null), ("0.0", rows.clone())),
        (json("C", "/", Value::Null), ("0/0", rows)),
        (json("C", ".", zlib), ("0.0", encoded)),
    ] {
        let store = Store::made_of(".zarray", &json, &[chunk, (".zattrs", attributes.clone().into())]);
        let (variable, placed) = open(&store.0).unwrap().arrays.remove(0);
        assert_eq!((variable.axes(), variable.units()), (&["y".to_owned(), "x".into()][..], Some("m")));
        assert_eq!(variable.descr(), "<i2");
        assert_eq!(whole(&placed), expected);
    }
    // Fortran's order: the file's axes are the array's in reverse.
    let store = Store::made_of(".zarray", &json("F", ".", Value::Null), &[("0.0", vec![0, 1, 0, 3, 0, 2, 0, 4])]);
    let (variable, placed) = open(&store.0).unwrap().arrays.remove(0);
    assert_eq!((variable.shape(), &placed.shape[..], placed.is_reversed), (&[2, 3][..], &[3, 2][..], true));
    let columns: Vec<u8> = [1_i16, 3, 2, 4, 9, 9].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(whole(&placed), columns);
    let blosc = json("C", ".", json!({"id": "blosc", "cname": "lz4"}));
    let store = Store::made_of(".zarray", &blosc, &[]);
    let (_, placed) = open(&store.0).unwrap().arrays.remove(0);
    assert!(text(placed.open(false).unwrap_err()).contains("\"blosc\""));
}

#[test]
fn shards_are_read() {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    for (inner, location) in [(vec![], "end"), (vec![Codec::Gzip(1), Codec::Crc32c], "start"), (vec![Codec::Zstd(1)], "end")] {
        let chain: Vec<Value> = std::iter::once(bytes.clone()).chain(inner.iter().map(|codec| codec.json())).collect();
        let codecs = json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [1, 2], "codecs": chain, "index_codecs": [bytes, {"name": "crc32c"}], "index_location": location}}]);
        let json = array_of_version_3(json!([4, 3]), json!([2, 4]), "uint8", codecs);
        // Shard (0, 0) has the chunks (0, 0), (0, 1) and (1, 0); there is no shard (1, 0).
        let chunks = [vec![1, 2], vec![3, 0], vec![4, 5]].map(|chunk| chunks::encode(&inner, &chunk).unwrap());
        let table = 4 * 16 + 4;
        let mut begin = if location == "start" { table } else { 0 };
        let mut index = Vec::new();
        for chunk in &chunks {
            index.extend([begin, chunk.len() as u64].iter().flat_map(|value| value.to_le_bytes()));
            begin += chunk.len() as u64;
        }
        index.extend([0xff; 16]);
        let index = chunks::encode(&[Codec::Crc32c], &index).unwrap();
        let file = if location == "start" { [index, chunks.concat()] } else { [chunks.concat(), index] }.concat();
        let store = Store::made_of("zarr.json", &json, &[("c/0/0", file.clone())]);
        let (_, placed) = open(&store.0).unwrap().arrays.remove(0);
        assert_eq!(whole(&told(&placed)), [1, 2, 3, 4, 5, 9, 9, 9, 9, 9, 9, 9]);
        assert!(text(placed.open(true).unwrap_err()).contains("shards"));
        for cut in [1, file.len() / 2, file.len() - 1] {
            fs::write(store.0.join("c/0/0"), &file[..cut]).unwrap();
            let mut bytes = [0; 12];
            placed.open(false).unwrap().read(&[0, 0], &[4, 3], &mut bytes).unwrap_err();
        }
    }
}

#[test]
fn fill_values_are_those_of_the_standard() {
    let fill = |descr: &str, value: Value| {
        let mut json = array_of_version_3(json!([1]), json!([1]), "", json!(["bytes"]));
        json["data_type"] = json!(metadata::type_name(kind(descr)));
        json["fill_value"] = value;
        let store = Store::made_of("zarr.json", &json, &[]);
        let (_, placed) = open(&store.0).unwrap().arrays.remove(0);
        placed.open(false).map(|_| whole(&placed)).map_err(text)
    };
    assert_eq!(fill("<f4", json!("NaN")), Ok(f32::NAN.to_le_bytes().to_vec()));
    assert_eq!(fill("<f8", json!("-Infinity")), Ok(f64::NEG_INFINITY.to_le_bytes().to_vec()));
    assert_eq!(fill("<f4", json!("0x7fc00001")), Ok(0x7fc0_0001_u32.to_le_bytes().to_vec()));
    assert_eq!(fill("<c8", json!([1.0, "NaN"])), Ok([1_f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat()));
    assert_eq!(fill("|i1", json!(-128)), Ok(vec![0x80]));
    assert_eq!(fill("<u8", json!(u64::MAX)), Ok(vec![0xff; 8]));
    assert_eq!(fill("<i4", json!(3.0)), Ok(vec![3, 0, 0, 0]));
    assert_eq!(fill("|V3", json!([1, 2, 3])), Ok(vec![1, 2, 3]));
    assert_eq!(fill("|V3", json!("AAAA")), Ok(vec![0; 3]));
    for (descr, value) in [
        ("|i1", json!(128)),
        ("|u1", json!(-1)),
        ("<i4", json!(0.5)),
        ("<f8", json!("0xx")),
        ("|V3", json!([1, 2])),
        ("|V3", json!([1, 2, 256])),
        ("<c8", json!([1])),
    ] {
        assert!(fill(descr, value.clone()).unwrap_err().contains("fill value"), "{value}");
    }
}

#[test]
fn absurd_metadata_is_refused_in_words() {
    let plain = json!(["bytes"]);
    let zstd = json!(["bytes", {"name": "zstd"}]);
    for (json, words) in [
        (array_of_version_3(json!([u64::MAX, 2]), json!([1, 1]), "int8", plain.clone()), "too large"),
        (array_of_version_3(json!([0, u64::MAX]), json!([1, 1]), "int8", plain.clone()), "too large"),
        (array_of_version_3(json!(vec![1; 65]), json!(vec![1; 65]), "int8", plain.clone()), "too large"),
        (array_of_version_3(json!([-1]), json!([1]), "int8", plain.clone()), "no shape"),
        (array_of_version_3(json!([4]), json!([0]), "int8", plain.clone()), "chunks cannot have the shape [0]"),
        (array_of_version_3(json!([4]), json!([1, 1]), "int8", plain.clone()), "chunks cannot"),
        (array_of_version_3(json!([4]), json!([u64::MAX]), "int8", plain.clone()), "chunks cannot"),
        (array_of_version_3(json!([4]), json!([3_u64 << 30]), "int8", zstd), "may have 2147483648"),
        (array_of_version_3(json!([4]), json!([1]), "float16", plain.clone()), "\"float16\""),
        (array_of_version_3(json!([4]), json!([1]), "r88888888888888888", plain), "not supported"),
        (array_of_version_3(json!([4]), json!([1]), "int8", json!([])), "bytes"),
        (array_of_version_3(json!([4]), json!([1]), "int8", json!(["bytes", "pcodec"])), "\"pcodec\""),
        (array_of_version_3(json!([4]), json!([1]), "int8", json!(["vlen-utf8"])), "\"vlen-utf8\""),
        (json!({"node_type": "tree"}), "neither a group nor an array"),
        (json!([1]), "no object"),
    ] {
        let store = Store::made_of("zarr.json", &json, &[]);
        let opened = open(&store.0).map(|contents| contents.arrays[0].1.open(false).map(drop));
        let refusal = text(opened.and_then(|opened| opened).unwrap_err());
        assert!(refusal.contains(words), "{refusal}");
    }
    let store = Store::made_of("zarr.json", &json!({}), &[]);
    fs::write(store.0.join("zarr.json"), "[".repeat(100_000)).unwrap();
    assert!(text(open(&store.0).unwrap_err()).contains("recursion"));
    fs::remove_file(store.0.join("zarr.json")).unwrap();
    assert!(text(open(&store.0).unwrap_err()).contains("not a Zarr store"));
    let group = json!({"zarr_format": 3, "node_type": "group"});
    let store = Store::made_of("zarr.json", &group, &[]);
    std::os::unix::fs::symlink(&store.0, store.0.join("circle")).unwrap();
    assert!(text(open(&store.0).unwrap_err()).contains("inside each other"));
}

#[test]
fn a_bomb_is_refused() {
    let json = array_of_version_3(json!([100]), json!([100]), "int8", json!(["bytes", {"name": "gzip"}]));
    let bomb = chunks::encode(&[Codec::Gzip(9)], &vec![0; 50 << 20]).unwrap();
    let store = Store::made_of("zarr.json", &json, &[("c/0", bomb)]);
    let placed = open(&store.0).unwrap().arrays.remove(0).1;
    let refusal = text(placed.open(false).unwrap().read(&[0], &[100], &mut [0; 100]).unwrap_err());
    assert!(refusal.contains("or more decoded bytes; 100 are expected"), "{refusal}");
}

#[test]
fn damage_never_panics() {
    let rounds = if std::env::var_os("GA_TEST_LONG").is_some() { 100_000 } else { 1000 };
    let mut random = Random(2);
    let store = Store::new();
    let variables = [described("a/p", &[3, 4]), Variable::new("q", Kind::Complex(8), &[5])];
    let chunks = [vec![2, 2], vec![2]];
    for (time, compression) in [(0.0, Some(Compression::Zstd(1))), (1.0, None)] {
        let placed = begin_step(&store.0, time, &variables, &vec![], &chunks, compression).unwrap();
        placed.iter().for_each(|placed| fill_all(placed, &random.bytes(placed.bytes(&placed.shape))));
        end_step(&store.0, time).unwrap();
    }
    let mut files: Vec<PathBuf> =
        ["zarr.json", "a/p/zarr.json", "q/zarr.json", "time/zarr.json"].map(|file| store.0.join(file)).into();
    files.extend(["a/p/c/0/0/0", "q/c/1/2", "time/c/0", "a/p/zarr.json", "a/p/zarr.json"].map(|file| store.0.join(file)));
    let words = ["-1", "0", "9223372036854775807", "18446744073709551616", "null", "[]", "{}", "\"\"", "1e300", "true", "[[1]]"];
    for round in 0..rounds {
        let file = &files[random.below(files.len())];
        let good = fs::read(file).unwrap();
        let mut bad = good.clone();
        let at = random.below(bad.len());
        match round % 4 {
            0 => bad[at] = random.next() as u8,
            1 => bad.truncate(at),
            2 => drop(bad.splice(at..(at + random.below(8)).min(good.len()), random.bytes(3))),
            // A value of JSON becomes another.
            _ => {
                let is_number = |byte: &u8| byte.is_ascii_digit();
                let begin = at + bad[at..].iter().position(is_number).unwrap_or(0);
                let end = begin + bad[begin..].iter().position(|byte| !is_number(byte)).unwrap_or(0);
                drop(bad.splice(begin..end, words[random.below(words.len())].bytes()));
            }
        }
        fs::write(file, bad).unwrap();
        read_all(&store.0);
        fs::write(file, good).unwrap();
    }
    assert_eq!(open(&store.0).unwrap().times, Some(vec![0.0, 1.0]));
}

fn read_all(path: &Path) {
    let Ok(contents) = open(path) else { return };
    for (_, placed) in &contents.arrays {
        let Ok(opened) = placed.open(false) else { continue };
        let count: Vec<usize> = placed.shape.iter().map(|&extent| extent.min(5)).collect();
        let last: Vec<usize> = placed.shape.iter().zip(&count).map(|(extent, count)| extent - count).collect();
        let mut bytes = vec![0; placed.bytes(&count)];
        let _ = opened.read(&vec![0; count.len()], &count, &mut bytes);
        let _ = opened.read(&last, &count, &mut bytes);
    }
}

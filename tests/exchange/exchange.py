"""Files of global-arrays in NumPy, h5py, xarray, zarr-python and PyVista, and theirs: equal bits.

exchange.py check FOLDER    reads what the test wrote
exchange.py write FOLDER    writes what the test reads
"""

import sys
from pathlib import Path

import h5py
import numcodecs
import numpy as np
import pyvista as pv
import vtk
import xarray as xr
import zarr

SHAPE = (3, 4, 5)
REAL = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
COMPLEX = ["c8", "c16"]


def values(kind, shape=SHAPE):
    n = np.arange(np.prod(shape)).reshape(shape) * 7 % 101
    if kind[0] == "f":
        return (n / 8).astype(kind)
    if kind[0] == "c":
        return (n / 8 + 1j * (n + 0.5)).astype(kind)
    return n.astype(kind)


def same(found, kind, shape=SHAPE):
    found, expected = np.asarray(found), values(kind, shape)
    assert found.dtype.newbyteorder("=") == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.tobytes() == expected.tobytes()


def described(u):
    """A data array of xarray with what the test says of it."""
    assert u.dims == ("z", "y", "x"), u.dims
    assert u.attrs["units"] == "K" and u.attrs["note"] == "Größe" and u.attrs["level"] == 3, u.attrs
    assert np.array_equal(u.coords["z"], 0.5 + 3.0 * np.arange(3)), u.coords
    assert np.array_equal(u.coords["x"], -1.0 + 1.0 * np.arange(5)), u.coords


def steps(data):
    assert np.array_equal(data["time"], [0.0, 0.5, 0.75]), data["time"]
    assert data["u"].dims == ("time", "y", "x"), data["u"].dims
    for step, first in enumerate([1.0, 2.0, 4.0]):
        assert np.array_equal(data["u"][step], np.full((4, 5), first)), data["u"][step]


def check(folder):
    for kind in REAL + COMPLEX:
        same(np.load(folder / f"{kind}.npy"), kind)
    with h5py.File(folder / "kinds.h5") as file:
        for kind in REAL + COMPLEX:
            same(file[f"kinds/{kind}"][()], kind)
        assert file.attrs["title"] == "kinds", dict(file.attrs)
    described(xr.open_dataset(folder / "described.h5", engine="h5netcdf")["u"])
    same(xr.open_dataset(folder / "described.h5", engine="h5netcdf")["u"], "f8")
    steps(xr.open_dataset(folder / "steps.h5", engine="h5netcdf"))
    group = zarr.open_group(folder / "kinds.zarr", mode="r")
    for kind in REAL + COMPLEX:
        same(group[f"kinds/{kind}"][:], kind)
    for name in ["described.zarr", "zstd.zarr", "gzip.zarr"]:
        data = xr.open_zarr(folder / name)
        described(data["u"])
        same(data["u"], "f8")
    steps(xr.open_zarr(folder / "steps.zarr"))
    image = pv.read(folder / "kinds.vti")
    assert image.dimensions == SHAPE[::-1], image.dimensions
    for kind in REAL:
        same(np.asarray(image[kind]).reshape(SHAPE), kind)
    image = pv.read(folder / "described.vti")
    assert image.spacing == (1.0, 2.0, 3.0) and image.origin == (-1.0, 0.0, 0.5), image
    grid = pv.read(folder / "cells.vtr")
    same(np.asarray(grid.cell_data["u"]).reshape(SHAPE), "f8")
    assert np.array_equal(grid.x, np.arange(6) ** 2)
    points = pv.read(folder / "points.vtp")
    same(np.asarray(points.points), "f8", (6, 3))
    same(np.asarray(points["mass"]), "f4", (6,))
    assert points.n_verts == 6
    reader = pv.get_reader(folder / "steps.pvd")
    assert reader.time_values == [0.0, 0.5, 0.75], reader.time_values
    reader.set_active_time_value(0.75)
    assert np.array_equal(reader.read()[0]["u"], np.full(20, 4.0))
    image = pv.get_reader(folder / "image.xdmf").read()
    same(np.asarray(image["u"]).reshape(SHAPE), "f8")


def write(folder):
    for kind in REAL + COMPLEX:
        np.save(folder / f"c-{kind}.npy", values(kind))
        np.save(folder / f"f-{kind}.npy", np.asfortranarray(values(kind)))
        np.save(folder / f"big-{kind}.npy", values(kind).astype(np.dtype(kind).newbyteorder(">")))
    with h5py.File(folder / "theirs.h5", "w") as file:
        for kind in REAL + COMPLEX:
            file[f"contiguous/{kind}"] = values(kind)
            file.create_dataset(f"big/{kind}", data=values(kind).astype(np.dtype(kind).newbyteorder(">")))
            file.create_dataset(f"chunked/{kind}", data=values(kind), chunks=(2, 3, 2))
            file.create_dataset(f"gzip/{kind}", data=values(kind), chunks=(2, 3, 2), compression="gzip", shuffle=True)
    data = xr.Dataset({"u": (("z", "y", "x"), values("f8"), {"units": "K"})}, coords={"x": np.arange(5.0)}, attrs={"title": "theirs"})
    data.to_netcdf(folder / "theirs.nc", engine="h5netcdf")
    # The usual codec of version 2, Blosc, is not read.
    zlib = {name: {"compressors": [numcodecs.Zlib()]} for name in ["u", "x"]}
    data.to_zarr(folder / "xarray-2.zarr", zarr_format=2, consolidated=True, encoding=zlib)
    data.to_zarr(folder / "xarray-3.zarr", zarr_format=3, consolidated=True)
    group = zarr.create_group(folder / "theirs.zarr")
    for kind in REAL + COMPLEX:
        for name, codec in [("none", None), ("zstd", "auto"), ("gzip", zarr.codecs.GzipCodec())]:
            array = group.create_array(f"{name}/{kind}", shape=SHAPE, chunks=(2, 3, 2), dtype=kind, compressors=codec)
            array[:] = values(kind)
    image = pv.ImageData(dimensions=SHAPE[::-1], spacing=(1, 2, 3), origin=(-1, 0, 0.5))
    image["u"] = values("f8").ravel()
    writer = vtk.vtkXMLImageDataWriter()
    writer.SetFileName(str(folder / "theirs.vti"))
    writer.SetInputData(image)
    writer.SetCompressorTypeToNone()
    writer.SetDataModeToAppended()
    writer.EncodeAppendedDataOff()
    assert writer.Write()


{"check": check, "write": write}[sys.argv[1]](Path(sys.argv[2]))

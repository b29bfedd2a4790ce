"""PySPH's own plane dam break (water 1 m wide and 2 m high, WCSPH, Wendland kernel), timed by the step on OpenMP's threads.

    OMP_NUM_THREADS=2 python dam_break_pysph.py out=FILE.csv steps=60

The first steps are not timed. The particles of water count, those of the walls do not.
"""

import sys
import tempfile
import time

import numpy as np
from pysph.examples import dam_break_2d as example

NOT_TIMED = 5
SPACING = 1 / 224
GRAVITY = 9.81


class Timed(example.DamBreak2D):
    """The example with a clock, and with the smoothing length and mass that belong to the spacing asked for: the example's own
    are always those of its default spacing, so that each particle of a finer lattice would have far too many neighbours."""

    def consume_user_options(self):
        super().consume_user_options()
        example.h = self.h
        example.m = example.ro * self.dx**2

    def water(self):
        return next(array for array in self.particles if array.name == "fluid")

    def energies(self):
        """Kinetic and potential energy of the water in J per metre of depth."""
        water = self.water()
        speeds = water.u**2 + water.v**2
        return 0.5 * np.sum(water.m * speeds), GRAVITY * np.sum(water.m * water.y)

    def pre_step(self, solver):
        if solver.count == 0:
            self.at_first = self.energies()
        if solver.count == NOT_TIMED:
            self.started = time.perf_counter()

    def post_step(self, solver):
        self.seconds = time.perf_counter() - getattr(self, "started", time.perf_counter())


def option(key):
    return next(word[len(key) + 1 :] for word in sys.argv if word.startswith(key + "="))


def main():
    out, steps = option("out"), int(option("steps"))
    with tempfile.TemporaryDirectory() as folder:
        app = Timed()
        app.run(
            ["--openmp", "--dx", str(SPACING), "--max-steps", str(steps), "--directory", folder]
            + ["--disable-output", "--no-adaptive-timestep"]
        )
    (kinetic, potential), (at_first, above) = app.energies(), app.at_first
    if not 0.9 < (kinetic - at_first) / (above - potential) < 1.02:
        print("VERIFY-FAIL energy gained", kinetic - at_first, "J and lost", above - potential, file=sys.stderr)
    count = app.water().get_number_of_particles()
    rate = count * (steps - NOT_TIMED) / app.seconds * 1e-6
    with open(out, "w") as file:
        file.write("op,shape,value,unit,best,trials,iters\n")
        file.write(f"sph,1e5 2 ranks,{rate:.6g},M/s,{rate:.6g},1,{steps - NOT_TIMED}\n")
    print(count, "particles of water,", kinetic - at_first, "J gained,", above - potential, "J lost")


main()

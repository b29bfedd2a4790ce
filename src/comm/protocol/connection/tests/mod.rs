mod seeds;
mod world;

mod search;
mod seeds;
mod world;

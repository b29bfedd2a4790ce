mod rules;
mod search;
mod seeds;
mod setup;
mod world;

fn is_long() -> bool {
    std::env::var("GA_TEST_LONG").is_ok_and(|value| value == "1")
}

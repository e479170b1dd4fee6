"""The match code: two short words that the game shows and the page shows too, so that a person can see at a glance
whether the page belongs to their own game. It is no secret and keeps nobody out; it makes a swapped link visible."""

import secrets

# Easy to read aloud, hard to confuse with one another, and nothing that anybody would mind to see.
# fmt: off
FIRST = (
    "amber", "arctic", "autumn", "azure", "bamboo", "brave", "bright", "bronze", "calm", "candid", "clever", "cobalt",
    "cosmic", "cosy", "crimson", "crystal", "dapper", "daring", "dusty", "eager", "early", "emerald", "fancy", "fast",
    "fluffy", "frosty", "gentle", "giant", "golden", "grand", "green", "happy", "hidden", "honest", "humble", "indigo",
    "ivory", "jade", "jolly", "keen", "kind", "lemon", "light", "lively", "lucky", "lunar", "magic", "marble", "mellow",
    "merry", "mighty", "misty", "modest", "mossy", "navy", "nimble", "noble", "ocean", "olive", "orange", "pastel",
    "pearl", "plucky", "polar", "proud", "purple", "quick", "quiet", "rapid", "royal", "ruby", "rusty", "sandy",
    "scarlet", "shiny", "silent", "silver", "smart", "snowy", "solar", "spicy", "steady", "stone", "sunny", "super",
    "swift", "tidy", "tiny", "topaz", "velvet", "violet", "vivid", "warm", "wild", "windy", "winter", "wise", "witty",
    "young", "zesty",
)
SECOND = (
    "acorn", "anchor", "apple", "arrow", "badger", "balloon", "banjo", "beacon", "beaver", "bell", "bird", "bison",
    "boat", "bridge", "brook", "button", "cactus", "camel", "candle", "canyon", "castle", "cedar", "cherry", "cloud",
    "comet", "compass", "coral", "crane", "crown", "daisy", "dolphin", "dragon", "drum", "eagle", "falcon", "feather",
    "fern", "flute", "forest", "fox", "garden", "gecko", "glacier", "guitar", "hammer", "harbor", "hawk", "hedgehog",
    "heron", "island", "jaguar", "kettle", "kite", "koala", "ladder", "lantern", "lemur", "lion", "lizard", "llama",
    "maple", "meadow", "melon", "meteor", "mirror", "moon", "mountain", "narwhal", "orchid", "otter", "owl", "panda",
    "parrot", "pebble", "pelican", "penguin", "piano", "pigeon", "planet", "pony", "puffin", "puzzle", "rabbit",
    "raven", "river", "rocket", "saddle", "salmon", "seal", "sparrow", "spoon", "squirrel", "star", "tiger", "toucan",
    "turtle", "valley", "violin", "walrus", "whale",
)
# fmt: on


def match_code() -> str:
    return f"{secrets.choice(FIRST)} {secrets.choice(SECOND)}"

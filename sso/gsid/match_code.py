"""The match code: two short words that both the game and the page display.

The user compares them and so notices a link that belongs to another session. The code is not a secret and grants
nothing.
"""

import secrets

# The words are easy to read aloud, hard to confuse with each other, and inoffensive.
# fmt: off
FIRST_WORDS = (
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
SECOND_WORDS = (
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


def new_match_code() -> str:
    return f"{secrets.choice(FIRST_WORDS)} {secrets.choice(SECOND_WORDS)}"

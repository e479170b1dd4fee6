# The content of a QR code: the bytes of a text with their error correction, in the order in which they are placed.

const Platform = preload("platform.gd")

# For each version: correction codewords of a block, then the data codewords of each block.
const BLOCKS = [
	[10, [16]],
	[16, [28]],
	[26, [44]],
	[18, [32, 32]],
	[24, [43, 43]],
	[16, [27, 27, 27, 27]],
	[18, [31, 31, 31, 31]],
	[22, [38, 38, 39, 39]],
	[22, [36, 36, 36, 37, 37]],
	[26, [43, 43, 43, 43, 44]],
]

var version := 0  # the smallest that has room for the text, or 0
var _content = null
var _correction_count := 0
var _sizes := []  # data codewords of each block


func _init(text):
	_content = Platform.to_bytes(text)
	for number in range(1, BLOCKS.size() + 1):
		if version == 0 and _content.size() + (2 if number < 10 else 3) <= _sum(BLOCKS[number - 1][1]):
			version = number
			_correction_count = BLOCKS[number - 1][0]
			_sizes = BLOCKS[number - 1][1]


# Splits the data into blocks, adds the correction of each, and takes from each block in turn.
func codewords() -> Array:
	var words = _data()
	var divisor = _divisor(_correction_count)
	var data = []
	var correction = []
	var start = 0
	for size in _sizes:
		var block = []
		for offset in size:
			block.append(words[start + offset])
		start += size
		data.append(block)
		correction.append(_remainder(block, divisor))
	return _interleaved(data) + _interleaved(correction)


# Returns the data codewords: mode, length, content, end and padding.
func _data() -> Array:
	var bits = []
	_append(bits, 4, 4)
	_append(bits, _content.size(), 8 if version < 10 else 16)
	for value in _content:
		_append(bits, value, 8)
	_append(bits, 0, 4)  # there is always room for the whole end: with it, the bits are whole bytes
	var words = []
	for start in range(0, bits.size(), 8):
		var word = 0
		for offset in 8:
			word = word << 1 | bits[start + offset]
		words.append(word)
	var padding = 0xEC
	while words.size() < _sum(_sizes):
		words.append(padding)
		padding ^= 0xEC ^ 0x11
	return words


static func _sum(numbers: Array) -> int:
	var total = 0
	for number in numbers:
		total += number
	return total


static func _append(bits: Array, value: int, count: int) -> void:
	for shift in range(count - 1, -1, -1):
		bits.append(value >> shift & 1)


static func _interleaved(blocks: Array) -> Array:
	var words = []
	for position in blocks[-1].size():  # the last one is the longest
		for block in blocks:
			if position < block.size():
				words.append(block[position])
	return words


# Multiplies in the field of 256 elements with the polynomial 0x11D.
static func _multiply(a: int, b: int) -> int:
	var product = 0
	for shift in range(7, -1, -1):
		product = product << 1 ^ (product >> 7) * 0x11D
		product ^= (b >> shift & 1) * a
	return product


# Returns the polynomial by which the Reed-Solomon code divides, without its first coefficient, which is 1.
static func _divisor(degree: int) -> Array:
	var divisor = []
	for position in degree:
		divisor.append(1 if position == degree - 1 else 0)
	var root = 1
	for _step in degree:
		for position in degree:
			divisor[position] = _multiply(divisor[position], root)
			if position + 1 < degree:
				divisor[position] ^= divisor[position + 1]
		root = _multiply(root, 2)
	return divisor


static func _remainder(block: Array, divisor: Array) -> Array:
	var remainder = []
	for _position in divisor:
		remainder.append(0)
	for word in block:
		var factor = word ^ remainder.pop_front()
		remainder.append(0)
		for position in divisor.size():
			remainder[position] ^= _multiply(divisor[position], factor)
	return remainder

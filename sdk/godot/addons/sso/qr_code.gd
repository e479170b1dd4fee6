# Makes QR codes of texts: byte mode, error correction level M, versions 1 to 10 (up to 213 bytes).

const QrData = preload("qr_data.gd")

const ALIGNMENT = [[], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50]]
const UNSET = -1
const DATA = 2  # added to the value of a module that a mask may change


# Returns the rows of the code, each an array of 1 (dark) and 0 (light), without a border. It is empty if the text is
# too long.
static func encode(text: String) -> Array:
	var data = QrData.new(text)
	if data.version == 0:
		return []
	var grid = _patterns(data.version)
	_place(grid, data.codewords())
	var best = []
	var least = -1
	for mask in 8:
		var rows = _masked(grid, mask)
		var penalty = _penalty(rows)
		if least < 0 or penalty < least:
			best = rows
			least = penalty
	return best


# Returns a grid with all that does not depend on the content. The format is written later, with the mask.
static func _patterns(version: int) -> Array:
	var size = 17 + 4 * version
	var grid = []
	for _row in size:
		var row = []
		for _column in size:
			row.append(UNSET)
		grid.append(row)
	for position in size:
		grid[6][position] = 1 - position % 2
		grid[position][6] = 1 - position % 2
	for center in [[3, 3], [3, size - 4], [size - 4, 3]]:
		_square(grid, center[0], center[1], 4, [2, 4])
	var places = ALIGNMENT[version - 1]
	for row in places:
		for column in places:
			if not ([row, column] in [[6, 6], [6, size - 7], [size - 7, 6]]):  # there are the three large squares
				_square(grid, row, column, 2, [1])
	_write_format(grid, 0)
	if version >= 7:
		_write_version(grid, version)
	return grid


# Draws squares around a center. The distances of some of them are light.
static func _square(grid: Array, center_row: int, center_column: int, reach: int, light: Array) -> void:
	for row in range(center_row - reach, center_row + reach + 1):
		for column in range(center_column - reach, center_column + reach + 1):
			if row >= 0 and row < grid.size() and column >= 0 and column < grid.size():
				var distance = int(max(abs(row - center_row), abs(column - center_column)))
				grid[row][column] = 0 if distance in light else 1


# Appends the remainder of a division of polynomials over two elements.
static func _with_remainder(value: int, generator: int, degree: int) -> int:
	var remainder = value
	for _step in degree:
		remainder = remainder << 1 ^ (remainder >> (degree - 1)) * generator
	return value << degree | remainder


static func _write_format(grid: Array, mask: int) -> void:
	var last = grid.size() - 1
	var bits = _with_remainder(mask, 0x537, 10) ^ 0x5412  # level M is 0
	for position in 15:
		var bit = bits >> position & 1
		if position < 8:
			grid[position if position < 6 else position + 1][8] = bit
			grid[8][last - position] = bit
		else:
			grid[8][7 if position == 8 else 14 - position] = bit
			grid[last - 14 + position][8] = bit
	grid[last - 7][8] = 1


static func _write_version(grid: Array, version: int) -> void:
	var bits = _with_remainder(version, 0x1F25, 12)
	for position in 18:
		var near = position / 3
		var far = grid.size() - 11 + position % 3
		grid[near][far] = bits >> position & 1
		grid[far][near] = bits >> position & 1


# Places the bits in pairs of columns from the right, upwards and downwards in turn.
static func _place(grid: Array, words: Array) -> void:
	var size = grid.size()
	var position = 0
	var right = size - 1
	var is_upward = true
	while right > 0:
		if right == 6:
			right = 5
		for step in size:
			var row = size - 1 - step if is_upward else step
			for column in [right, right - 1]:
				if grid[row][column] == UNSET:
					var is_inside = position < words.size() * 8
					var bit = words[position >> 3] >> (7 - position % 8) & 1 if is_inside else 0
					grid[row][column] = DATA + bit
					position += 1
		is_upward = not is_upward
		right -= 2


static func _masked(grid: Array, mask: int) -> Array:
	var rows = []
	for row in grid.size():
		var modules = []
		for column in grid.size():
			var value = grid[row][column]
			if value >= DATA:
				value = value - DATA ^ int(_is_inverted(mask, row, column))
			modules.append(value)
		rows.append(modules)
	_write_format(rows, mask)
	return rows


static func _is_inverted(mask: int, row: int, column: int) -> bool:
	match mask:
		0:
			return (row + column) % 2 == 0
		1:
			return row % 2 == 0
		2:
			return column % 3 == 0
		3:
			return (row + column) % 3 == 0
		4:
			return ((row >> 1) + column / 3) % 2 == 0
		5:
			return row * column % 2 + row * column % 3 == 0
		6:
			return (row * column % 2 + row * column % 3) % 2 == 0
	return ((row + column) % 2 + row * column % 3) % 2 == 0


# Returns how hard the code is to read, by the four rules of the standard.
static func _penalty(rows: Array) -> int:
	var size = rows.size()
	var dark = 0
	var penalty = 0
	for row in size:
		dark += rows[row].count(1)
		var line = ""
		var crossing = ""
		for column in size:
			line += str(rows[row][column])
			crossing += str(rows[column][row])
			if row > 0 and column > 0:
				var sum = rows[row][column] + rows[row - 1][column]
				sum += rows[row][column - 1] + rows[row - 1][column - 1]
				penalty += 3 if sum == 0 or sum == 4 else 0
		penalty += _line_penalty(line) + _line_penalty(crossing)
	return penalty + 10 * int(abs(dark * 20 - size * size * 10) / (size * size))


static func _line_penalty(line: String) -> int:
	var penalty = 0
	var run = 0
	for position in line.length():
		run = run + 1 if position > 0 and line[position] == line[position - 1] else 1
		penalty += 3 if run == 5 else (1 if run > 5 else 0)
		if position >= 6 and line.substr(position - 6, 7) == "1011101":
			# Outside of the code it is light.
			var before = "0000" + line
			var after = line + "0000"
			if before.substr(position - 6, 4) == "0000" or after.substr(position + 1, 4) == "0000":
				penalty += 40
	return penalty

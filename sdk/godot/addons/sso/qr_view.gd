# Shows a text as a QR code, as large as fits into the control: call show_text with the link of a sign-in.
class_name QrView
extends Control

const Platform = preload("platform.gd")
const QrCode = preload("qr_code.gd")

const BORDER = 4  # modules of light around the code, without which cameras do not find it

var _rows := []


# An empty text shows nothing.
func show_text(text: String) -> void:
	_rows = QrCode.encode(text) if text != "" else []
	Platform.redraw(self)


func _draw() -> void:
	if _rows.size() == 0:
		return
	var space = get_rect().size
	var count = _rows.size() + 2 * BORDER
	var module = floor(min(space.x, space.y) / count)
	var origin = ((space - Vector2(count, count) * module) / 2).floor()
	draw_rect(Rect2(origin, Vector2(count, count) * module), Color(1, 1, 1))
	for row in _rows.size():
		for column in _rows.size():
			if _rows[row][column] == 1:
				var place = origin + Vector2(column + BORDER, row + BORDER) * module
				draw_rect(Rect2(place, Vector2(module, module)), Color(0, 0, 0))

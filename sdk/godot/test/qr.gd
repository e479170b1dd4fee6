# Prints the QR code of the text in SSO_TEXT: a line of 1 (dark) and 0 (light) for each row.
extends SceneTree

const QrCode = preload("../addons/sso/qr_code.gd")


func _initialize():
	for row in QrCode.encode(OS.get_environment("SSO_TEXT")):
		var line = "ROW "
		for module in row:
			line += str(module)
		printerr(line)
	quit()

extends Control


func _ready():
	$SignIn.base_url = "http://localhost:8000"
	$SignIn.factor = "my first device"  # later: a random name, which the game stores
	$SignIn.show_link.connect(_on_show_link)
	$SignIn.stage_changed.connect(func(stage): $Label.text = "The page: " + stage)
	$SignIn.signed_in.connect(_on_signed_in)
	$SignIn.failed.connect(_on_failed)
	$SignIn.resume()  # without a browser, if the player was here before


func _on_show_link(url, words):
	$Label.text = "Scan the code. The page must show: " + words
	$QrView.show_text(url)
	OS.shell_open(url)


func _on_signed_in(player):
	$QrView.show_text("")
	$Label.text = "Welcome, %s!" % player.nick


func _on_failed(failure):
	if failure.reason == "sign_in_needed":
		$SignIn.sign_in()
	else:
		$QrView.show_text("")
		$Label.text = "Not signed in: " + failure.reason

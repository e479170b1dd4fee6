from sso.cli import main

main()

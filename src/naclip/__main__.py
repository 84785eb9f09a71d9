from naclip.cli.main import main

main()

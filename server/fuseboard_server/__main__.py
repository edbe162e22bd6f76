from fuseboard_server.main import main

main()

"""One file per command; each turns options into a call and errors into messages."""

COMMANDS = {
    "serve": ("serve", "Receive telemetry, keep it, show it and raise alerts."),
    "demo": ("demo", "Show the board on a demo agent's calls."),
    "dashboard": ("dashboard", "Show the board of a collector that runs elsewhere."),
    "import": ("import_", "Read telemetry from files that collectors and exporters wrote."),
    "export": ("export", "Write calls, attempts, transitions or alerts to a file."),
    "incident": ("incident", "Write what happened in a window as a report."),
    "backup": ("backup", "Copy the data file while the server runs, or at rest."),
    "retention": ("retention", "Remove what has expired, or say what would go."),
    "store": ("store", "Look after the data file, or set up a ClickHouse database."),
    "doctor": ("doctor", "Check the set-up and say what to do about what is wrong."),
    "alerts": ("alerts", "Render or check the alert rules."),
    "grafana": ("grafana", "Render the Grafana board."),
}
"""Command → (module of this package, one line of help)."""

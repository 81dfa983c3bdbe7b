"""Tables of Apache Fluss as logs. The client library runs in processes of its own, see `laketier_fluss.children`."""

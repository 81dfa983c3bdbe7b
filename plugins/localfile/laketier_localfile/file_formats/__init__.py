"""The file formats of data files, each in a module of its own behind one interface (`FileFormat`)."""

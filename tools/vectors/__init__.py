"""What hosts do with their files, as cases in a file, run through the public functions of `dragoman.host`."""

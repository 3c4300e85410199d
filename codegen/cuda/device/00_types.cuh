// The CUDA prelude: what every generated kernel is compiled behind.

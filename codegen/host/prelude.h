// The host prelude: what every generated host kernel is compiled behind.

"""The loop IR: data types, expressions, statements, and what reads, prints and checks them."""

/* Calls what nobody has. */
extern void nobody_has_this(void);
void entry(void **arguments) {
  (void)arguments;
  nobody_has_this();
}

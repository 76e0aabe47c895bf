//===- ParserState.h - The parser class (private to the parser's sources) -------------------------------*- C++ -*-===//
//
// One class in five sources: ParseStatements.cpp, ParseCompound.cpp, ParseExpressions.cpp, ParsePrimaries.cpp and
// ParseLiterals.cpp. Every parse function returns null (or false) after it has reported a mistake; the nearest list of
// statements then skips to the next one. An Error token stands for a mistake that the lexer has already reported: the
// parser fails there without a word.
//
//===--------------------------------------------------------------------------------------------------------------===//
#ifndef DITRON_FRONTEND_SYNTAX_PARSERSTATE_H
#define DITRON_FRONTEND_SYNTAX_PARSERSTATE_H

#include "ditron/frontend/syntax/Lexer.h"
#include "ditron/frontend/syntax/Parser.h"
#include "llvm/ADT/SmallVector.h"

namespace ditron::frontend {

class ParserState {
public:
  /// The tokens end in EndOfFile, as those of the lexer do. The depth is that of the expression they stand in.
  ParserState(ast::Module &module, const SourceFile &file, DiagnosticEngine &diagnostics, std::vector<Token> tokens,
              unsigned expressionDepth = 0)
      : module(module), file(file), diagnostics(diagnostics), tokens(std::move(tokens)),
        previousEnd(this->tokens.front().begin), expressionDepth(expressionDepth) {}

  /// The statements of a whole file.
  ast::StmtList parseFile();
  /// The one expression that the tokens hold, up to the end of the file.
  ast::Expr *parseWholeExpression();
  /// The same for a field of an f-string, where tuples without parentheses and `yield` are allowed.
  ast::Expr *parseField();

private:
  using Exprs = llvm::SmallVector<ast::Expr *, 4>;
  using Stmts = llvm::SmallVector<ast::Stmt *, 8>;

  /// Counts the recursion of expressions; false once it is too deep, after one message.
  class DepthGuard {
  public:
    explicit DepthGuard(ParserState &parser) : parser(parser) { ++parser.expressionDepth; }
    ~DepthGuard() { --parser.expressionDepth; }
    DepthGuard(const DepthGuard &) = delete;
    DepthGuard &operator=(const DepthGuard &) = delete;
    bool check();

  private:
    ParserState &parser;
  };

  // Tokens.
  const Token &current() const { return tokens[index]; }
  const Token &ahead(size_t count) const { return tokens[std::min(index + count, tokens.size() - 1)]; }
  bool at(TokenKind kind) const { return current().kind == kind; }
  llvm::StringRef textOf(const Token &token) const { return file.text().slice(token.begin, token.end); }
  bool atWord(llvm::StringRef word) const { return at(TokenKind::Name) && textOf(current()) == word; }
  Token take();
  bool accept(TokenKind kind);
  /// Takes a token of the kind or reports what was found instead; `where` continues "expected X".
  bool expect(TokenKind kind, llvm::StringRef where = "");
  bool expectName(ast::Identifier &name, llvm::StringRef what);
  /// The end of the last token that is not a line end or a change of indentation.
  uint32_t lastEnd() const { return previousEnd; }
  SourceRange rangeFrom(uint32_t begin) const { return file.range(begin, std::max(begin, previousEnd)); }
  SourceRange rangeOf(const Token &token) const { return file.range(token.begin, token.end); }
  ast::Identifier identifier(const Token &token) const { return {textOf(token), rangeOf(token)}; }

  // Errors. Both return null, which converts to every node pointer.
  std::nullptr_t error(SourceRange range, std::string message);
  std::nullptr_t unexpected(llvm::StringRef expected);
  std::string describeCurrent() const;
  /// True if the lexer has reported that a bracket before the current token is never closed.
  bool insideUnclosedBracket() const;

  // Nodes.
  template <typename T> T *create(uint32_t begin) { return module.create<T>(rangeFrom(begin)); }
  /// Computes the height of a finished expression; null, after a message, when it is too high.
  ast::Expr *finish(ast::Expr *node);
  ast::ExprList list(const Exprs &items) { return module.copy(llvm::ArrayRef<ast::Expr *>(items)); }

  // Statements (ParseStatements.cpp, ParseCompound.cpp).
  void parseStatementsUntil(TokenKind end, Stmts &statements);
  bool parseStatement(Stmts &statements);
  bool parseSimpleLine(Stmts &statements);
  ast::Stmt *parseSimple();
  bool parseBlock(llvm::StringRef owner, const Token &ownerToken, ast::StmtList &body);
  void recover();
  void skipIndented();
  ast::Stmt *parseExpressionStatement();
  ast::Stmt *parseAnnotated(uint32_t begin, const Token &first, ast::Expr *target);
  ast::Stmt *parseReturn();
  ast::Stmt *parseRaise();
  ast::Stmt *parseAssert();
  ast::Stmt *parseDelete();
  ast::Stmt *parseNameList(bool isGlobal);
  ast::Stmt *parseTypeAlias();
  ast::Stmt *parseImport();
  ast::Stmt *parseImportFrom();
  bool parseDottedName(ast::Identifier &name);
  bool parseAlias(bool isDotted, llvm::SmallVectorImpl<ast::Alias> &names);
  ast::Stmt *parseDecorated();
  ast::Stmt *parseFunction(uint32_t begin, ast::ExprList decorators);
  ast::Stmt *parseClass(uint32_t begin, ast::ExprList decorators);
  ast::Stmt *parseAsync();
  ast::Stmt *parseIf();
  ast::Stmt *parseFor(uint32_t begin, bool isAsync);
  ast::Stmt *parseWhile();
  ast::Stmt *parseWith(uint32_t begin, bool isAsync);
  ast::Stmt *parseTry();
  ast::Stmt *parseMatch();
  bool parseCase(llvm::SmallVectorImpl<ast::MatchCase> &cases);
  bool parseElse(ast::StmtList &orelse);
  bool startsMatch() const;
  bool withItemsInParentheses() const;
  size_t matchingBracket(size_t open) const;
  bool skipTypeParameters();
  bool checkTarget(const ast::Expr *target, llvm::StringRef action);

  // Expressions (ParseExpressions.cpp, ParsePrimaries.cpp).
  ast::Expr *parseExpression();
  ast::Expr *parseNamed();
  ast::Expr *parseStarredOrNamed();
  /// Expressions separated by commas, as a Tuple if there is a comma; starred elements are allowed.
  ast::Expr *parseExpressionList();
  ast::Expr *parseListOrYield();
  ast::Expr *parseYield();
  ast::Expr *parseTargetList(llvm::StringRef action);
  ast::Expr *parseLambda();
  bool parseParameters(TokenKind end, llvm::SmallVectorImpl<ast::Param> &params);
  bool parseParameter(TokenKind end, llvm::SmallVectorImpl<ast::Param> &params, ast::ParamKind kind);
  bool checkParameters(llvm::ArrayRef<ast::Param> params);
  ast::Expr *parseOr();
  ast::Expr *parseAnd();
  ast::Expr *parseNot();
  ast::Expr *parseComparison();
  ast::Expr *parseBinary(unsigned minPrecedence);
  ast::Expr *parseOperand();
  ast::Expr *parseUnary();
  ast::Expr *parsePower();
  ast::Expr *parsePrimary();
  ast::Expr *parseAtom();
  ast::Expr *parseParenthesized();
  ast::Expr *parseListDisplay();
  ast::Expr *parseBraceDisplay();
  bool parseArguments(Exprs &args, llvm::SmallVectorImpl<ast::Keyword> &keywords);
  ast::Expr *parseArgument();
  ast::Expr *parseSubscript();
  ast::Expr *parseSubscriptItem();
  bool atComprehension() const;
  ast::Expr *parseComprehension(uint32_t begin, ast::ComprehensionKind kind, ast::Expr *key, ast::Expr *element,
                                TokenKind closing);
  bool startsExpression() const;

  // Literals (ParseLiterals.cpp).
  ast::Expr *parseNumber();
  ast::Expr *parseStrings();
  struct StringPieces;
  bool addString(const Token &token, StringPieces &pieces);
  bool addFString(uint32_t begin, uint32_t end, bool isRaw, bool isSpec, StringPieces &pieces);
  bool addField(const FStringPart &part, bool isRaw, StringPieces &pieces);
  ast::JoinedStr *joinPieces(StringPieces &pieces, SourceRange range);
  ast::Expr *constant(SourceRange range, ConstValue value);
  ast::Expr *unsupportedLiteral(SourceRange range, llvm::StringRef reason);

  ast::Module &module;
  const SourceFile &file;
  DiagnosticEngine &diagnostics;
  std::vector<Token> tokens;
  size_t index = 0;
  uint32_t previousEnd = 0;
  unsigned blockDepth = 0;
  unsigned expressionDepth = 0;
};

} // namespace ditron::frontend

#endif // DITRON_FRONTEND_SYNTAX_PARSERSTATE_H
